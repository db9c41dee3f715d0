/**
 * Cues of captions in the editor: ordered, immutable lists, parsed from and written as WebVTT, and
 * merged with another editor's version.
 */
import { formatExactTime, parseStartTime_s } from "../format.js";
import { gettext } from "../messages.js";

/**
 * Cue with times in whole milliseconds; `settings` is its position in WebVTT's syntax.
 * @typedef {{ readonly start_ms: number, readonly end_ms: number, readonly text: string,
 *   readonly settings: string }} Cue
 */
/** @typedef {readonly Cue[]} Cues */

// Length of a new cue, unless the next one starts earlier.
const NEW_MS = 2000;
const SHORTEST_MS = 100;
const BLOCK = /^\n*(\S+) --> (\S+) ?([^\n]*)\n([\s\S]*?)\n*$/;

/** Parse WebVTT that the portal wrote. @param {string} text @returns {Cue[]} */
export function parseWebVtt(text) {
  return text.split("\n\n").flatMap((block) => {
    const [, start, end, settings = "", body] = BLOCK.exec(block) ?? [];
    if (!start || !end || body === undefined) return [];
    const [start_ms, end_ms] = [parseTime_ms(start) ?? 0, parseTime_ms(end) ?? 0];
    // A "<" that looks like the start of a tag stays escaped.
    const shown = body.replace(/&lt;(?![a-z/\d])/gi, "<").replaceAll("&gt;", ">");
    return [{ start_ms, end_ms, text: shown.replaceAll("&amp;", "&"), settings }];
  });
}

/** Parse a time such as "1:02.500". @param {string} text @returns {number | null} */
export function parseTime_ms(text) {
  const seconds = parseStartTime_s(text);
  return seconds === null ? null : Math.round(seconds * 1000);
}

/** Return the cues as WebVTT. @param {Cues} cues */
export function toWebVtt(cues) {
  const blocks = cues.map(({ start_ms, end_ms, text, settings }) => {
    const lines = text.split("\n").map((line) => line.trim());
    const body = lines.filter(Boolean).join("\n").replaceAll("-->", "--&gt;");
    return `${`${formatTime(start_ms)} --> ${formatTime(end_ms)} ${settings}`.trim()}\n${body}\n`;
  });
  return ["WEBVTT\n", ...blocks].join("\n");
}

/**
 * Return a time in WebVTT's syntax.
 * @param {number} time_ms @returns {string} such as "00:01:02.500"
 */
function formatTime(time_ms) {
  const hours = String(Math.floor(time_ms / 3_600_000)).padStart(2, "0");
  return hours + new Date(time_ms).toISOString().slice(13, 23);
}

/**
 * Return a time as fields show it.
 * @param {number} time_ms @returns {string} such as "1:02.500"
 */
export function formatShortTime(time_ms) {
  return formatExactTime(time_ms / 1000);
}

/** Return the text of a cue as browsers parse it. @param {Cue} cue */
export function cueText({ text }) {
  return text.replace(/&(?!\w+;)/g, "&amp;").replace(/<(?![a-z/\d])/gi, "&lt;");
}

/** Return the text without markup. @param {Cue} cue */
export function plainText(cue) {
  return new VTTCue(0, 1, cueText(cue)).getCueAsHTML().textContent ?? "";
}

/** Return the cues by their times. @param {Cues} cues @returns {Cue[]} */
function inOrder(cues) {
  return [...cues].sort((a, b) => a.start_ms - b.start_ms || a.end_ms - b.end_ms);
}

/**
 * Change a cue, and move it if its times require.
 * @param {Cues} cues @param {number} at @param {Partial<Cue>} changes @returns {Cue[]}
 */
export function changeCue(cues, at, changes) {
  return inOrder(cues.map((cue, index) => (index === at ? { ...cue, ...changes } : cue)));
}

/**
 * Insert an empty cue that ends when the next cue starts, at the latest.
 * @param {Cues} cues @param {number} start_ms
 */
export function addCue(cues, start_ms) {
  const next_ms = cues.find((cue) => cue.start_ms > start_ms)?.start_ms ?? Infinity;
  const end_ms = start_ms + Math.min(NEW_MS, Math.max(next_ms - start_ms, SHORTEST_MS));
  const cue = { start_ms, end_ms, text: "", settings: "" };
  return { cues: inOrder([...cues, cue]), cue };
}

/**
 * Split a cue at a position in its text.
 * @param {Cues} cues @param {number} at @param {number} caret
 */
export function splitCue(cues, at, caret) {
  const cue = cues[at];
  if (!cue || cue.end_ms - cue.start_ms < 2 * SHORTEST_MS) return cues;
  const { start_ms, end_ms, text } = cue;
  // The time is divided in proportion to the text.
  const middle_ms = Math.round(start_ms + (caret / (text.length || 1)) * (end_ms - start_ms));
  const cut_ms = Math.min(Math.max(middle_ms, start_ms + SHORTEST_MS), end_ms - SHORTEST_MS);
  const first = { ...cue, end_ms: cut_ms, text: text.slice(0, caret).trim() };
  return cues.toSpliced(at, 1, first, { ...cue, start_ms: cut_ms, text: text.slice(caret).trim() });
}

/** Join a cue with the next cue. @param {Cues} cues @param {number} at */
export function joinCues(cues, at) {
  const [cue, next] = cues.slice(at, at + 2);
  if (!cue || !next) return cues;
  const text = [cue.text, next.text].filter(Boolean).join("\n");
  return cues.toSpliced(at, 2, { ...cue, end_ms: Math.max(cue.end_ms, next.end_ms), text });
}

/**
 * Move all cues by a time, without moving the first one before 0.
 * @param {Cues} cues @param {number} by_ms
 */
export function shiftCues(cues, by_ms) {
  const moved_ms = Math.max(by_ms, -(cues[0]?.start_ms ?? 0));
  const moved = cues.map((cue) => {
    return { ...cue, start_ms: cue.start_ms + moved_ms, end_ms: cue.end_ms + moved_ms };
  });
  return { cues: moved, moved_ms };
}

/**
 * Replace a text in all cues, ignoring case.
 * @param {Cues} cues @param {string} query @param {string} replacement
 */
export function replaceText(cues, query, replacement) {
  const pattern = new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi");
  return cues.map((cue) => {
    const text = cue.text.replace(pattern, () => replacement);
    return text === cue.text ? cue : { ...cue, text };
  });
}

/**
 * Extend each cue to the start of the next cue, as chapters are.
 * @param {Cues} cues @returns {Cue[]}
 */
export function withoutGaps(cues) {
  return cues.map((cue, at) => {
    return { ...cue, end_ms: cues[at + 1]?.start_ms ?? cue.start_ms + NEW_MS };
  });
}

/** Return why a cue can't be saved. @param {Cue} cue @returns {string} empty if it can */
export function cueFault({ start_ms, end_ms, text }) {
  if (end_ms <= start_ms) return gettext("End time must be after start time.");
  return text.trim() ? "" : gettext("Enter text.");
}

/**
 * Return whether the previous cue ends after this one starts.
 * @param {Cues} cues @param {number} at
 */
export function overlaps(cues, at) {
  const [before, cue] = [cues[at - 1], cues[at]];
  return !!before && !!cue && before.end_ms > cue.start_ms;
}

/**
 * Return the index of the cue shown at a time; -1 for none.
 * @param {Cues} cues @param {number} at_ms
 */
export function indexAt(cues, at_ms) {
  const index = cues.findLastIndex(({ start_ms }) => start_ms <= at_ms);
  return at_ms < (cues[index]?.end_ms ?? 0) ? index : -1;
}

/**
 * Merge two changes of `base`. For cues that both changed, `mine` wins; `lost` has the versions of
 * `theirs`.
 * @param {Cues} base @param {Cues} mine @param {Cues} theirs
 * @returns {{ cues: Cue[], lost: Cue[] }}
 */
export function mergeCues(base, mine, theirs) {
  /** @param {Cues} cues @returns {(cue: Cue) => boolean} */
  const among = (cues) => {
    const keys = new Set(cues.map((cue) => JSON.stringify(cue)));
    return (cue) => keys.has(JSON.stringify(cue));
  };
  const overlap = (/** @type {Cue} */ cue) => (/** @type {Cue} */ other) =>
    cue.start_ms < other.end_ms && other.start_ms < cue.end_ms;
  const [inBase, inMine, inTheirs] = [among(base), among(mine), among(theirs)];
  const changedByBoth = base.filter((cue) => !inMine(cue) && !inTheirs(cue));
  const added = mine.filter((cue) => !inBase(cue) && !inTheirs(cue));
  const lost = theirs.filter(
    (cue) =>
      !inBase(cue) &&
      !inMine(cue) &&
      [changedByBoth, added].every((cues) => cues.some(overlap(cue))),
  );
  const kept = theirs.filter((cue) => (inMine(cue) || !inBase(cue)) && !lost.includes(cue));
  return { cues: inOrder([...kept, ...added]), lost };
}
