/** Cut of a video to a part of its film, which the portal makes once the video is ready. */

import { requestJson } from "../people/session.js";
import { describeQuotaError, NotPublished } from "../publishing/failures.js";
import { followProcessing } from "../publishing/processing.js";
import { isSignedOut, Refused } from "../requests.js";
import { retry } from "../retry.js";
import { CUT_FAILED, CUTTING, PREPARING } from "./texts.js";

const PAUSE_MS = 1_000;

/** @typedef {import("../publishing/processing.js").Processing} Processing */
/**
 * Part of a film, whose end is Infinity if it is that of the film.
 * @typedef {import("../bounds.js").Part} Part
 *
 * Progress of a cut: `share` is from 0 to 1.
 * @typedef {(text: string, share: number) => void} Report
 */

/**
 * Cut a video to a part of its film, and wait until viewers get it. The rest stays stored.
 * @param {string} url of the video in the API
 * @param {Part | null} part null undoes an earlier cut @param {Report} report
 * @param {AbortSignal} signal ends the wait; the portal goes on
 * @throws {NotPublished} the video can't be cut, and so isn't published
 * @throws {Refused | NoResponse | AccountChanged} or the signal's reason
 */
export async function cutVideo(url, part, report, signal) {
  await waitUntilReady(`${url}/transcode`, report, signal);
  const request = (/** @type {string} */ method, /** @type {unknown} */ body) =>
    retry(() => requestJson(method, `${url}/cuts`, { body, signal }), { signal });
  try {
    const { filmSeconds } = await request("GET", undefined);
    const keep = part && [{ ...part, endSeconds: Math.min(part.endSeconds, filmSeconds) }];
    let cuts = await request("PUT", { keep });
    while (cuts.state === "processing") {
      report(CUTTING, cuts.percent / 100);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      cuts = await request("GET", undefined);
    }
    if (cuts.state === "failed") throw refusal(cuts.failure?.message);
  } catch (error) {
    if (!(error instanceof Refused) || isSignedOut(error)) throw error;
    throw refusal(describeQuotaError(error)?.[1] || error.detail);
  }
}

/** @param {string} url of the video's progress @param {Report} report @param {AbortSignal} signal */
async function waitUntilReady(url, report, signal) {
  /** @type {Processing | null} */
  let last = null;
  const handleProgress = (/** @type {Processing | null} */ processing) => {
    last = processing;
    if (processing) report(PREPARING, processing.percent / 100);
  };
  await followProcessing(url, handleProgress, signal);
  signal.throwIfAborted();
  const { stage = "failed", failure = "" } = /** @type {any} */ (last) ?? {};
  if (stage !== "ready") throw refusal(failure);
}

/** @param {string} [reason] of the portal */
function refusal(reason = "") {
  return new NotPublished([], [CUT_FAILED, reason].filter(Boolean).join(" "), false);
}
