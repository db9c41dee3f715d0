/** What an editor should know of a file before it is published. Pure: facts in, findings out. */

/**
 * "refuse": the portal is sure not to publish it. "warn": look again. "info": what will happen.
 * @typedef {"refuse" | "warn" | "info"} Weight
 * @typedef {"not_a_video" | "truncated" | "no_video_track" | "encrypted" | "too_long" | "too_large"
 *   | "end_missing" | "no_audio" | "hdr" | "frame_rate" | "surround" | "portrait"
 *   | "unknown_codec" | "unreadable"} FindingCode
 * @typedef {{ code: FindingCode, weight: Weight }} Finding
 * @typedef {{ size_bytes: number, duration_s: number, pixels: number }} Limits 0 means no limit
 */

/** As the portal itself has them. */
const MAX_SIDE_PX = 16_384;
const MIN_READABLE_SHARE = 0.9;
const MAX_FPS = 60.5;
const HDR_TRANSFERS = new Set(["pq", "hlg"]);

/**
 * @param {import("./examine.js").Facts} facts
 * @param {Limits} limits
 * @returns {Finding[]} the gravest first
 */
export function findingsOf(facts, limits) {
  if (facts.outcome === "unknown") return [{ code: "unreadable", weight: "info" }];
  if (facts.outcome !== "read") return [{ code: facts.outcome, weight: "refuse" }];
  const refusals = refusalsOf(facts, limits);
  return refusals.length ? refusals : [...warningsOf(facts), ...notesOf(facts)];
}

/**
 * @param {import("./examine.js").Facts} facts
 * @param {Limits} limits
 * @returns {Finding[]}
 */
function refusalsOf({ isEncrypted, video, duration_s }, limits) {
  /** @type {FindingCode[]} */
  const codes = [];
  if (isEncrypted) codes.push("encrypted");
  else if (!video) codes.push("no_video_track");
  else {
    const { width, height } = video;
    const isLarge = limits.pixels > 0 && width * height > limits.pixels;
    if (isLarge || Math.max(width, height) > MAX_SIDE_PX) codes.push("too_large");
    if (limits.duration_s > 0 && (duration_s ?? 0) > limits.duration_s) codes.push("too_long");
  }
  return codes.map((code) => ({ code, weight: "refuse" }));
}

/**
 * @param {import("./examine.js").Facts} facts
 * @returns {Finding[]}
 */
function warningsOf({ media_share, audio }) {
  /** @type {FindingCode[]} */
  const codes = [];
  // The share of bytes only stands for that of the frames: the portal counts those.
  if (media_share < MIN_READABLE_SHARE) codes.push("end_missing");
  if (!audio) codes.push("no_audio");
  return codes.map((code) => ({ code, weight: "warn" }));
}

/**
 * @param {import("./examine.js").Facts} facts
 * @returns {Finding[]}
 */
function notesOf({ video, audio }) {
  /** @type {FindingCode[]} */
  const codes = [];
  if (video && HDR_TRANSFERS.has(video.transfer ?? "")) codes.push("hdr");
  if (video?.fps && video.fps > MAX_FPS) codes.push("frame_rate");
  if (audio && audio.channels > 2) codes.push("surround");
  if (video && video.height > video.width) codes.push("portrait");
  if (video && !video.codec) codes.push("unknown_codec");
  return codes.map((code) => ({ code, weight: "info" }));
}
