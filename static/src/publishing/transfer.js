/** Progress of uploads. */

import { Refused } from "../requests.js";
import { isRepacked } from "./selectors.js";

/** @typedef {import("./api.js").Api} Api */
/**
 * Progress of a transfer. `stored_bytes` counts complete parts in storage; `sent_bytes` also counts
 * sent bytes that may not have arrived.
 * @typedef {{ key?: string, fingerprint?: string, phase?: "sending" | "confirming" | "sent",
 *   stored_bytes?: number, sent_bytes?: number, trouble?: Error | null,
 *   isSilent?: boolean }} TransferUpdate
 */

/**
 * Return the progress of an upload of an earlier visit.
 * @param {Api} api @param {{ key: string, size_bytes: number, repackedFrom: unknown,
 *   trim: unknown }} upload
 * @returns {Promise<{ isStored: boolean, arrived_bytes: number } | null>} null without a response
 */
export async function arrivedOf(api, { key, size_bytes, ...upload }) {
  try {
    const { state, sizeBytes, parts } = await api.read(key);
    // The size of a file that is repacked is unknown.
    const isStored = state === "stored" && (isRepacked(upload) || sizeBytes === size_bytes);
    // An object of another size is no progress.
    const countedParts = state === "stored" ? [] : parts;
    return { isStored, arrived_bytes: countedParts.reduce((sum, part) => sum + part.sizeBytes, 0) };
  } catch (error) {
    const isGone = error instanceof Refused && error.status === 404;
    return isGone ? { isStored: false, arrived_bytes: 0 } : null;
  }
}
