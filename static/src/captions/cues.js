/**
 * Captions as they are edited: lists of cues in their order, which are never changed in place, read
 * from and written as WebVTT, and merged with what someone else has saved meanwhile.
 */

/**
 * Times in whole milliseconds; `settings` is the cue's place, as WebVTT writes it.
 * @typedef {{ readonly start_ms: number, readonly end_ms: number, readonly text: string,
 *   readonly settings: string }} Cue
 */
/** @typedef {readonly Cue[]} Cues */

// What a new cue lasts where there is room.
const NEW_MS = 2000;
const SHORTEST_MS = 100;
const HISTORY_LIMIT = 500;
const BLOCK =
  /^(\d+):(\d\d):(\d\d)\.(\d{3}) --> (\d+):(\d\d):(\d\d)\.(\d{3}) ?([^\n]*)\n([\s\S]*?)\n*$/;

/** @param {string} text as the portal writes it @returns {Cue[]} */
export function parseWebVtt(text) {
  return text.split("\n\n").flatMap((block) => {
    const found = BLOCK.exec(block.trimStart());
    if (!found) return [];
    const [start_ms = 0, end_ms = 0] = [1, 5].map((at) => milliseconds(found.slice(at, at + 4)));
    return [{ start_ms, end_ms, text: shownText(found[10] ?? ""), settings: found[9] ?? "" }];
  });
}

/** @param {string[]} parts */
function milliseconds(parts) {
  const [h = 0, min = 0, s = 0, ms = 0] = parts.map(Number);
  return ((h * 60 + min) * 60 + s) * 1000 + ms;
}

/** What could be taken for a tag stays written as it is. @param {string} text */
function shownText(text) {
  const plain = text.replace(/&lt;(?![a-z/\d])/gi, "<").replaceAll("&gt;", ">");
  return plain.replaceAll("&amp;", "&");
}

/** The text as browsers read that of a cue. @param {Cue} cue */
export function cueText({ text }) {
  return text.replace(/&(?!\w+;)/g, "&amp;").replace(/<(?![a-z/\d])/gi, "&lt;");
}

/** The text without markup. @param {Cue} cue */
export function plainText(cue) {
  return new VTTCue(0, 1, cueText(cue)).getCueAsHTML().textContent ?? "";
}

/** @param {Cues} cues */
export function toWebVtt(cues) {
  const blocks = cues.map(({ start_ms, end_ms, text, settings }) => {
    const lines = text.split("\n").map((line) => line.trim());
    const body = lines.filter(Boolean).join("\n").replaceAll("-->", "--&gt;");
    const times = `${clock(start_ms)} --> ${clock(end_ms)} ${settings}`.trimEnd();
    return `${times}\n${body}\n`;
  });
  return ["WEBVTT\n", ...blocks].join("\n");
}

/** @param {number} time_ms @returns {string} such as "00:01:02.500" */
export function clock(time_ms) {
  const parts = [3_600_000, 60_000, 1000].map((unit, at) =>
    String(Math.floor(time_ms / unit) % (at ? 60 : 1e9)).padStart(2, "0"),
  );
  return `${parts.join(":")}.${String(time_ms % 1000).padStart(3, "0")}`;
}

/** @param {Cues} cues @returns {Cue[]} */
function inOrder(cues) {
  return [...cues].sort((a, b) => a.start_ms - b.start_ms || a.end_ms - b.end_ms);
}

/** @param {Cues} cues @param {number} at @param {Partial<Cue>} changes @returns {Cue[]} */
export function change(cues, at, changes) {
  const found = cues.map((cue, index) => (index === at ? { ...cue, ...changes } : cue));
  return "start_ms" in changes || "end_ms" in changes ? inOrder(found) : found;
}

/** A new cue at a time, up to the next one. @param {Cues} cues @param {number} at_ms */
export function add(cues, at_ms) {
  const next = cues.find(({ start_ms }) => start_ms > at_ms);
  const room_ms = Math.max((next?.start_ms ?? Number.POSITIVE_INFINITY) - at_ms, SHORTEST_MS);
  const end_ms = at_ms + Math.min(NEW_MS, room_ms);
  const cue = { start_ms: at_ms, end_ms, text: "", settings: "" };
  return { cues: inOrder([...cues, cue]), cue };
}

/** In two where the text is cut; the time in proportion. @param {Cues} cues @param {number} at @param {number} caret */
export function split(cues, at, caret) {
  const cue = cues[at];
  if (!cue) return cues;
  const share = cue.text ? caret / cue.text.length : 0.5;
  const middle_ms = Math.round(cue.start_ms + share * (cue.end_ms - cue.start_ms));
  const cut_ms = Math.min(
    Math.max(middle_ms, cue.start_ms + SHORTEST_MS),
    cue.end_ms - SHORTEST_MS,
  );
  if (cut_ms <= cue.start_ms) return cues;
  const first = { ...cue, end_ms: cut_ms, text: cue.text.slice(0, caret).trim() };
  const second = { ...cue, start_ms: cut_ms, text: cue.text.slice(caret).trim() };
  return [...cues.slice(0, at), first, second, ...cues.slice(at + 1)];
}

/** Makes one of a cue and the next. @param {Cues} cues @param {number} at */
export function join(cues, at) {
  const [cue, next] = cues.slice(at, at + 2);
  if (!cue || !next) return cues;
  const end_ms = Math.max(cue.end_ms, next.end_ms);
  const text = [cue.text, next.text].filter(Boolean).join("\n");
  return [...cues.slice(0, at), { ...cue, end_ms, text }, ...cues.slice(at + 2)];
}

/** @param {Cues} cues @param {number} at */
export function remove(cues, at) {
  return cues.filter((_, index) => index !== at);
}

/** Nothing begins before the film does. @param {Cues} cues @param {number} by_ms */
export function shift(cues, by_ms) {
  const first_ms = cues[0]?.start_ms ?? 0;
  const moved_ms = Math.max(by_ms, -first_ms);
  return cues.map((cue) => ({
    ...cue,
    start_ms: cue.start_ms + moved_ms,
    end_ms: cue.end_ms + moved_ms,
  }));
}

/** Whatever its case. @param {Cues} cues @param {string} wanted @param {string} replacement */
export function replaceText(cues, wanted, replacement) {
  const pattern = new RegExp(wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi");
  let count = 0;
  const found = cues.map((cue) => {
    const text = cue.text.replace(pattern, () => {
      count += 1;
      return replacement;
    });
    return text === cue.text ? cue : { ...cue, text };
  });
  return { cues: found, count };
}

/** Each up to the next one, as chapters are. @param {Cues} cues @returns {Cue[]} */
export function inARow(cues) {
  return cues.map((cue, at) => {
    const end_ms = cues[at + 1]?.start_ms ?? cue.start_ms + NEW_MS;
    return { ...cue, end_ms };
  });
}

/** @param {Cue} cue @returns {string} what is wrong with it; empty if nothing is */
export function faultOf({ start_ms, end_ms, text }) {
  if (end_ms <= start_ms) return "It ends before it begins.";
  return text.trim() ? "" : "It has no text.";
}

/** The cue that is shown at a time; -1 for none. @param {Cues} cues @param {number} at_ms */
export function indexAt(cues, at_ms) {
  let [low, high] = [0, cues.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((cues[middle]?.start_ms ?? 0) <= at_ms) low = middle + 1;
    else high = middle;
  }
  const cue = cues[low - 1];
  return cue && at_ms < cue.end_ms ? low - 1 : -1;
}

/** @param {Cue} cue */
function keyOf({ start_ms, end_ms, text, settings }) {
  return JSON.stringify([start_ms, end_ms, text, settings]);
}

/** @param {Cue} one @param {Cue} other */
function overlap(one, other) {
  return one.start_ms < other.end_ms && other.start_ms < one.end_ms;
}

/**
 * Both changes of `base`. Of a cue that both have changed mine stays; `lost` is what they made of it.
 * @param {Cues} base @param {Cues} mine @param {Cues} theirs @returns {{ cues: Cue[], lost: Cue[] }}
 */
export function merge(base, mine, theirs) {
  const [before, own, others] = [base, mine, theirs].map((cues) => new Set(cues.map(keyOf)));
  const has = (/** @type {Set<string> | undefined} */ keys, /** @type {Cue} */ cue) =>
    keys?.has(keyOf(cue)) ?? false;
  const changedByBoth = base.filter((cue) => !has(own, cue) && !has(others, cue));
  const added = mine.filter((cue) => !has(before, cue) && !has(others, cue));
  const isLost = (/** @type {Cue} */ cue) =>
    !has(before, cue) &&
    !has(own, cue) &&
    changedByBoth.some((it) => overlap(it, cue)) &&
    added.some((it) => overlap(it, cue));
  const kept = theirs.filter((cue) => (has(own, cue) || !has(before, cue)) && !isLost(cue));
  return { cues: inOrder([...kept, ...added]), lost: theirs.filter(isLost) };
}

/** The states of a list of cues, for undoing. What is typed into one field is one step. */
export class History {
  /** @type {Cues[]} */
  #states;
  #at = 0;
  #lastKey = "";

  /** @param {Cues} cues */
  constructor(cues) {
    this.#states = [cues];
  }

  /** @returns {Cues} */
  get cues() {
    return this.#states[this.#at] ?? [];
  }

  /** @param {Cues} cues @param {string} [key] of the field that is typed into */
  change(cues, key = "") {
    const isSameField = key !== "" && key === this.#lastKey;
    this.#states.splice(this.#at + (isSameField ? 0 : 1), Number.POSITIVE_INFINITY, cues);
    if (this.#states.length > HISTORY_LIMIT) this.#states.shift();
    this.#at = this.#states.length - 1;
    this.#lastKey = key;
  }

  /** @param {-1 | 1} way @returns {boolean} whether there was such a step */
  step(way) {
    this.#lastKey = "";
    if (!this.#states[this.#at + way]) return false;
    this.#at += way;
    return true;
  }

  /** @param {-1 | 1} way */
  canStep(way) {
    return this.#states[this.#at + way] !== undefined;
  }
}
