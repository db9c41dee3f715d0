/** The speed of an upload, and the progress of all of them. Pure. */

import { isCounted, isRunning } from "./selectors.js";

/** @typedef {import("./upload.js").Upload} Upload */

const RATE_MEMORY_S = 4;
const RATE_STEP_S = 0.2;

/**
 * Speed is an average that forgets slowly, so that neither it nor the time left jumps with each
 * burst.
 * @typedef {{ speed_bps: number | null, sent_bytes: number, at_ms: number | null }} Rate
 */

/** Nothing was measured yet. @type {Rate} */
export const NO_RATE = { speed_bps: null, sent_bytes: 0, at_ms: null };

/**
 * @param {Rate} rate
 * @param {number} sent_bytes altogether
 * @param {number} now_ms
 * @returns {Rate} with a speed once two measurements are far enough apart
 */
export function measured(rate, sent_bytes, now_ms) {
  if (rate.at_ms === null) return { speed_bps: null, sent_bytes, at_ms: now_ms };
  const elapsed_s = (now_ms - rate.at_ms) / 1000;
  if (elapsed_s < RATE_STEP_S) return rate;
  const current_bps = Math.max(0, sent_bytes - rate.sent_bytes) / elapsed_s;
  const before_bps = rate.speed_bps ?? current_bps;
  const weight = 1 - Math.exp(-elapsed_s / RATE_MEMORY_S);
  const speed_bps = before_bps + weight * (current_bps - before_bps);
  return { speed_bps, sent_bytes, at_ms: now_ms };
}

/**
 * The share of all bytes that was sent never goes down: when files join or leave, it stays, and the
 * rest of the way is divided anew from there.
 * @typedef {object} Overall
 * @property {number} share from 0 to 1, and 1 only when everything is sent
 * @property {number} count of files
 * @property {number} sent_bytes
 * @property {number} total_bytes
 * @property {number} left_bytes that were not sent, whether those that were have arrived or not
 * @property {{ share: number, sent_bytes: number }} base where the present division began
 * @property {number | null} speed_bps of all that are being sent; null while unknown
 */

/** @type {Overall} */
export const NO_PROGRESS = {
  share: 0,
  count: 0,
  sent_bytes: 0,
  total_bytes: 0,
  left_bytes: 0,
  base: { share: 0, sent_bytes: 0 },
  speed_bps: null,
};

/** @param {Overall} before @param {Upload[]} uploads @returns {Overall} */
export function overallOf(before, uploads) {
  const counted = uploads.filter((upload) => upload.file && isCounted(upload));
  const sent_bytes = counted.reduce((sum, upload) => sum + upload.sent_bytes, 0);
  const total_bytes = counted.reduce((sum, upload) => sum + upload.size_bytes, 0);
  let { share, base } = before;
  if (total_bytes !== before.total_bytes) {
    // Before the first file, after all was sent, or when nothing is left, a new round begins.
    const isNew = share >= 1 || !before.total_bytes || !total_bytes;
    if (isNew) share = total_bytes > 0 ? sent_bytes / total_bytes : 0;
    base = { share, sent_bytes };
  }
  const rest_bytes = total_bytes - base.sent_bytes;
  const done = rest_bytes > 0 ? Math.max(0, sent_bytes - base.sent_bytes) / rest_bytes : 0;
  share = Math.max(share, base.share + (1 - base.share) * done);
  if (total_bytes > 0 && sent_bytes >= total_bytes) share = 1;
  const speed_bps = speedOf(counted.filter(isRunning));
  const left_bytes = counted.reduce((sum, upload) => sum + leftOf(upload), 0);
  return { share, count: counted.length, sent_bytes, total_bytes, left_bytes, base, speed_bps };
}

/** @param {Upload} upload @returns {number} bytes that were not sent, arrived or not */
export function leftOf({ size_bytes, sent_bytes, rate }) {
  return size_bytes - Math.max(sent_bytes, rate.sent_bytes);
}

/** @param {Upload[]} running @returns {number | null} */
function speedOf(running) {
  const speeds = running.flatMap(({ rate: { speed_bps } }) => speed_bps ?? []);
  return speeds.length ? speeds.reduce((sum, speed_bps) => sum + speed_bps) : null;
}
