/**
 * Removed parts of a film: immutable lists of parts in order, apart from each other, in times of
 * the whole film.
 */

import { BOUNDS } from "../bounds.js";
import { formatExactTime, formatNumber } from "../format.js";
import { gettext, ngettext } from "../messages.js";

/** @typedef {import("../bounds.js").Part} Part */
/** @typedef {readonly Part[]} Parts */

// The portal has the same bounds (`portal/transcoding/planning/kept.py`).
const SHORTEST_KEPT_S = 0.5;
const MAX_KEPT = 100;
// A saved cut may end this long before the picture, with its last frame.
const END_S = 0.05;
// Times of frames and of the playhead are rounded by less than this.
const ROUNDING_S = 0.001;

/** Return the parts with another one; those that touch are joined. @param {Parts} parts @param {Part} part */
export function withPart(parts, part) {
  /** @type {Part[]} */
  const joined = [];
  for (const next of [...parts, part].sort((a, b) => a.startSeconds - b.startSeconds)) {
    const last = joined.at(-1);
    if (!last || next.startSeconds > last.endSeconds) joined.push(next);
    else joined.splice(-1, 1, { ...last, endSeconds: Math.max(last.endSeconds, next.endSeconds) });
  }
  return joined;
}

/** Return the parts without one of them. @param {Parts} parts @param {Part} part */
export function without(parts, part) {
  return parts.filter((other) => other !== part);
}

/**
 * Return whether two lists have the same parts, with bounds that differ by less than a time.
 * @param {Parts} parts @param {Parts} others @param {number} tolerance_s
 */
export function areAlike(parts, others, tolerance_s) {
  const isAlike = (/** @type {Part} */ part, /** @type {Part | undefined} */ other) =>
    BOUNDS.every((bound) => Math.abs(part[bound] - (other?.[bound] ?? Infinity)) < tolerance_s);
  return parts.length === others.length && parts.every((part, at) => isAlike(part, others[at]));
}

/** Return the part at a time. @param {Parts} parts @param {number} at_s */
export function partAt(parts, at_s) {
  return parts.find(({ startSeconds, endSeconds }) => startSeconds <= at_s && at_s < endSeconds);
}

/** Return the total length before a time. @param {Parts} parts @param {number} [until_s] */
export function lengthOf_s(parts, until_s = Infinity) {
  const length = (/** @type {Part} */ { startSeconds, endSeconds }) =>
    Math.min(endSeconds, until_s) - Math.min(startSeconds, until_s);
  return parts.reduce((sum_s, part) => sum_s + length(part), 0);
}

/**
 * Return the rest of a film without parts: what is kept of it, or removed from it.
 * @param {Parts} parts @param {number} film_s @returns {Parts}
 */
export function restOf(parts, film_s) {
  const starts = [0, ...parts.map(({ endSeconds }) => endSeconds)];
  const ends = [...parts.map(({ startSeconds }) => startSeconds), film_s];
  return starts
    .map((startSeconds, index) => ({ startSeconds, endSeconds: ends[index] ?? film_s }))
    .filter((part) => lengthOf_s([part]) > ROUNDING_S);
}

/**
 * Return the parts that kept intervals of the API remove. The sound may go on after the picture,
 * which a saved cut doesn't have, and which is no part.
 * @param {Parts} keep @param {number} film_s @param {number} picture_s end of the picture
 * @returns {Parts}
 */
export function removedBy(keep, film_s, picture_s) {
  return restOf(keep, film_s).filter(({ startSeconds }) => picture_s - startSeconds > END_S);
}

/** Return the number of the frame at a time. @param {number} at_s @param {number} frame_s */
export function frameAt(at_s, frame_s) {
  return Math.floor((at_s + ROUNDING_S) / frame_s);
}

/**
 * Return the start of the frame at a time, rounded down to milliseconds; after the start of the
 * last frame, the end of the film.
 * @param {number} at_s @param {number} frame_s @param {number} film_s
 * @param {number} picture_s end of the picture
 */
export function frameStart_s(at_s, frame_s, film_s, picture_s = film_s) {
  if (at_s > picture_s - frame_s + ROUNDING_S) return film_s;
  // Products such as 803 × 0.04 are a little too small.
  return Math.floor(frameAt(at_s, frame_s) * frame_s * 1000 + 1e-6) / 1000;
}

/**
 * Return a part with its bounds moved outwards to whole frames, so that nothing of it is left.
 * @param {Part} part @param {number} frame_s @param {number} film_s @param {number} picture_s
 * @returns {Part}
 */
export function toWholeFrames({ startSeconds, endSeconds }, frame_s, film_s, picture_s = film_s) {
  const start_s = Math.min(startSeconds, picture_s - frame_s);
  const end_s = endSeconds + frame_s - 2 * ROUNDING_S;
  return {
    startSeconds: frameStart_s(start_s, frame_s, film_s, picture_s),
    endSeconds: frameStart_s(end_s, frame_s, film_s, picture_s),
  };
}

/**
 * Return a part for each marked sentence, and for the pause before the next one if that is marked.
 * @template {Part} Sentence
 * @param {readonly Sentence[]} sentences @param {(sentence: Sentence) => boolean} isMarked
 */
export function markedParts(sentences, isMarked) {
  return sentences.flatMap((sentence, index) => {
    const next = sentences[index + 1];
    const end = next && isMarked(next) ? next.startSeconds : sentence.endSeconds;
    const endSeconds = Math.max(sentence.endSeconds, end);
    return isMarked(sentence) ? { startSeconds: sentence.startSeconds, endSeconds } : [];
  });
}

/** Return why the portal can't remove these parts; empty if it can. @param {Parts} removed @param {number} film_s */
export function removalFault(removed, film_s) {
  const kept = restOf(removed, film_s);
  if (kept.length === 0) return gettext("Nothing of the video is left. Restore a part.");
  if (kept.length > MAX_KEPT) {
    const most = MAX_KEPT - 1;
    return ngettext(
      "There are too many cuts. Make at most %(count)s.",
      "There are too many cuts. Make at most %(count)s.",
      most,
      { count: formatNumber(most) },
    );
  }
  const short = kept.find((part) => lengthOf_s([part]) < SHORTEST_KEPT_S - ROUNDING_S);
  if (!short) return "";
  return gettext("Less than half a second is left at %(time)s. Cut it, too, or keep more of it.", {
    time: formatExactTime(short.startSeconds),
  });
}

/** Return the version of recorded parts in an ETag: its text up to a point. @param {string} etag */
export function versionIn(etag) {
  return etag.split('"')[1]?.split(".")[0];
}
