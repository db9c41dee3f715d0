/**
 * Progress of published videos, polled from the API until they are ready or have failed. After
 * failed requests the pauses grow, and respect Retry-After.
 */

import { requestJson } from "../people/session.js";
import { AccountChanged } from "../people/sign-in-again.js";
import { isTemporary, Refused } from "../requests.js";
import { Backoff } from "../retry.js";

const PAUSE_MS = 2_000;
/** Pause after the retry policy's budget is spent. */
const LONGEST_PAUSE_MS = 60_000;

/**
 * Progress of a video. `failure` is a message, empty if the video has not failed. The next video in
 * the queue has the `queuePosition` 1.
 * @typedef {{ stage: "waiting" | "probing" | "transcoding" | "finishing" | "ready" | "failed",
 *   percent: number, queuePosition: number | null, hasPoster: boolean, failure: string }} Processing
 */

/**
 * Follow a video until it is ready, has failed, or is no longer visible to the account.
 * @param {string} url of the video's progress
 * @param {(processing: Processing | null) => void} report called with null if the video is no
 *   longer visible
 * @param {AbortSignal} signal stops the polling
 */
export async function followProcessing(url, report, signal) {
  let backoff = new Backoff();
  while (!signal.aborted) {
    let pause_ms = PAUSE_MS;
    try {
      const processing = await read(url, signal);
      backoff = new Backoff();
      report(processing);
      if (!processing || processing.stage === "ready" || processing.stage === "failed") return;
    } catch (error) {
      pause_ms = backoff.nextPause_ms(error) ?? LONGEST_PAUSE_MS;
    }
    await new Promise((resolve) => setTimeout(resolve, pause_ms));
  }
}

/**
 * Return the progress of a video; null if the account can't read it.
 * @param {string} url @param {AbortSignal} signal @returns {Promise<Processing | null>}
 * @throws {Error} a temporary one
 */
async function read(url, signal) {
  try {
    const { posterUrl, failure, ...rest } = await requestJson("GET", url, { signal });
    return { ...rest, hasPoster: posterUrl !== null, failure: failure?.message ?? "" };
  } catch (error) {
    const isPermanent = error instanceof Refused && !isTemporary(error.status);
    if (isPermanent || error instanceof AccountChanged) return null;
    throw error;
  }
}
