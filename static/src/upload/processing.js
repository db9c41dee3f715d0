/**
 * Follows published videos until they are ready or have failed, by the API. After a failure the
 * pauses grow, and follow the portal's Retry-After.
 */

import { SomeoneElse } from "../accounts/sign-in-again.js";
import { Backoff } from "../backoff.js";
import { Refused, requestJson } from "../requests.js";
import { isPassing } from "./failures.js";

const PAUSE_MS = 2_000;
/** Pause after the retry policy's budget is spent. */
const LONGEST_PAUSE_MS = 60_000;

/**
 * Progress of a video. `failure` is a text, empty if it has not failed; a `queuePosition` of 1 is
 * next.
 * @typedef {{ stage: "waiting" | "probing" | "transcoding" | "finishing" | "ready" | "failed",
 *   percent: number, queuePosition: number | null, hasPoster: boolean, failure: string }} Processing
 */

/**
 * Follow a video until it is ready, has failed, or is no longer visible to the account.
 * @param {string} url of its document
 * @param {(processing: Processing | null) => void} tell null for the last of these
 * @param {AbortSignal} signal ends it
 */
export async function follow(url, tell, signal) {
  let backoff = new Backoff();
  while (!signal.aborted) {
    let pause_ms = PAUSE_MS;
    try {
      const processing = await read(url, signal);
      backoff = new Backoff();
      tell(processing);
      if (!processing || processing.stage === "ready" || processing.stage === "failed") return;
    } catch (error) {
      const asked_s = error instanceof Refused ? error.retryAfter_s : 0;
      pause_ms = backoff.pause_ms({ asked_ms: asked_s * 1000 }) ?? LONGEST_PAUSE_MS;
    }
    await new Promise((resolve) => setTimeout(resolve, pause_ms));
  }
}

/**
 * @param {string} url @param {AbortSignal} signal @returns {Promise<Processing | null>}
 * @throws {Error} for now
 */
async function read(url, signal) {
  try {
    const { posterUrl, failure, ...rest } = await requestJson("GET", url, { signal });
    return { ...rest, hasPoster: posterUrl !== null, failure: failure?.message ?? "" };
  } catch (error) {
    const isLost = error instanceof Refused && !isPassing(error.status);
    if (isLost || error instanceof SomeoneElse) return null;
    throw error;
  }
}
