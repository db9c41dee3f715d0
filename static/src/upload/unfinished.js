/** What the portal knows of an upload of another visit, and giving it up. */

import { Refused, requestJson } from "../api.js";

/** @typedef {import("./saved.js").Saved} Saved */
/**
 * `sent_bytes` is null when it couldn't be found out.
 * @typedef {{ state: "pending" | "uploading" | "stored" | "unknown", sent_bytes: number | null }}
 *   Progress
 */

/**
 * @param {string} url of all uploads
 * @param {Saved} saved
 * @returns {Promise<Progress>}
 */
export async function askProgress(url, { uploadId, size_bytes }) {
  try {
    const { state, sizeBytes, parts } = await requestJson("GET", `${url}/${uploadId}`);
    // Something else than the file is as good as nothing.
    if (state === "stored" && sizeBytes !== size_bytes) return { state: "pending", sent_bytes: 0 };
    /** @type {number[]} */
    const sizes = parts.map((/** @type {{ sizeBytes: number }} */ part) => part.sizeBytes);
    return { state, sent_bytes: sizes.reduce((sum, size_bytes) => sum + size_bytes, 0) };
  } catch (error) {
    const isGone = error instanceof Refused && error.status === 404;
    // Without an answer it can be continued all the same; how far it is will show then.
    return isGone ? { state: "pending", sent_bytes: 0 } : { state: "unknown", sent_bytes: null };
  }
}

/**
 * Has storage forget what has arrived. It matters little if that fails: nobody refers to it.
 * @param {string} url of all uploads
 * @param {Saved} saved
 */
export async function abandon(url, { uploadId }) {
  try {
    await requestJson("DELETE", `${url}/${uploadId}`, { keepalive: true });
  } catch (error) {
    console.info("The upload was not removed from storage.", error);
  }
}
