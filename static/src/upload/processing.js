/**
 * Follows published videos until they are ready or have failed, by the portal's own documents about
 * their transcoding. After a failure it pauses longer and longer, and as long as it is asked to.
 */

import { SomeoneElse } from "../accounts/sign-in-again.js";
import { Backoff } from "../backoff.js";
import { Refused, requestJson } from "../requests.js";
import { isPassing } from "./failures.js";

const PAUSE_MS = 2_000;
/** Once the pauses of the retry policy are used up. */
const LONGEST_PAUSE_MS = 60_000;

/**
 * How a video stands. The `failure` is in words, and empty where it has not failed; of
 * `queuePosition` 1 is next.
 * @typedef {{ stage: "waiting" | "probing" | "transcoding" | "finishing" | "ready" | "failed",
 *   percent: number, queuePosition: number | null, hasPoster: boolean, failure: string }} Processing
 */

/**
 * Follows a video until it is ready, has failed, or can't be seen any more by who is signed in now.
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
