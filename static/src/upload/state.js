/**
 * The upload page's one state, and what events make of it. Pure: the state before and the event
 * determine the state after. What is done about a change stands in `store.js`.
 */

import * as is from "./selectors.js";
import * as row from "./upload.js";
import { newsOf } from "./words.js";

const ON_FILES = { target: /** @type {const} */ ("files") };

/** @typedef {row.Upload} Upload */
/** @typedef {import("./findings.js").Limits} Limits */
/** @typedef {{ file: File, id: string, match: number | null }} Choice `match`: row it continues */
/**
 * `news` and `focus` belong to the last event alone: what screen readers are told, and where the
 * keyboard goes on. `destination` is the video whose page comes next; empty while this one stays.
 * `blank` is what a row says in which nothing was typed.
 * @typedef {{ limits: Limits, uploads: Upload[], nextNumber: number, isOnline: boolean,
 *   fileFaults: string[], overall: import("./selectors.js").Overall, destination: string,
 *   news: string[], blank: row.Details,
 *   focus: { number?: number, target: "panel" | "fault" | "files" } | null }} State
 */
/**
 * Events of one row.
 * @typedef {{
 *   looked: { isStored: boolean, arrived_bytes: number },
 *   inspected: { inspection: row.Inspection },
 *   edited: { details: row.Details, pointer: string },
 *   requested: { request: Upload["request"] },
 *   transferred: { news: import("./transfer.js").TransferNews, now_ms: number },
 *   failed: { error: Error },
 *   reachable: {}, pause: {}, resume: {}, retry: {},
 * }} RowEvents
 */
/**
 * Events that concern more than one row, or what the keyboard and screen readers follow.
 * @typedef {{
 *   restored: { saved: row.Saved[] },
 *   chosen: { choices: Choice[], now: number, from?: number },
 *   mismatched: { number: number, message: string },
 *   submitted: { number?: number },
 *   published: { number: number, video: NonNullable<Upload["video"]> },
 *   refused: { number: number, error: import("./publication.js").NotPublished },
 *   connected: { isOnline: boolean }, signedIn: {},
 *   cancel: { number: number }, remove: { number: number }, copy: { number: number },
 * }} PageEvents
 */
/**
 * @typedef {{ [T in keyof RowEvents]: { type: T, number: number } & RowEvents[T] }[keyof RowEvents]
 *   | { [T in keyof PageEvents]: { type: T } & PageEvents[T] }[keyof PageEvents]} UploadEvent
 */

/**
 * @param {Limits} limits @param {row.Details} [details] what the first row's fields hold already
 * @param {boolean} [isOnline] @param {row.Details} [blank]
 * @returns {State}
 */
export function initialState(limits, details, isOnline = true, blank = row.NO_DETAILS) {
  return {
    limits,
    blank,
    uploads: [row.emptyUpload(1, details)],
    nextNumber: 2,
    isOnline,
    fileFaults: [],
    overall: is.NO_PROGRESS,
    destination: "",
    news: [],
    focus: null,
  };
}

/** @param {State} before @param {UploadEvent} event @returns {State} */
export function reduce(before, event) {
  const state = is.started(handled({ ...before, news: [], focus: null }, event));
  const now_ms = event.type === "transferred" ? event.now_ms : null;
  const after = { ...state, overall: is.overallOf(before.overall, state.uploads, now_ms) };
  return { ...after, news: [...state.news, ...newsOf(before, after)] };
}

/** @param {State} state @param {any} event @returns {State} */
function handled(state, event) {
  const change = rowHandlers[/** @type {keyof RowEvents} */ (event.type)];
  if (change) return updated(state, event.number, (upload) => change(upload, event, state));
  return pageHandlers[/** @type {keyof PageEvents} */ (event.type)](state, event);
}

/** @type {{ [T in keyof RowEvents]: (upload: Upload, event: RowEvents[T], state: State) => Upload }} */
const rowHandlers = {
  looked: (upload, { isStored, arrived_bytes }) =>
    // Meanwhile its file may have been chosen.
    is.isRestored(upload) ? row.withArrived(upload, isStored, arrived_bytes) : upload,

  inspected: (upload, { inspection }) => row.withInspection(upload, inspection),

  edited: (upload, { details, pointer }) => {
    const faults = pointer ? is.without(upload.faults, pointer) : upload.faults;
    return { ...upload, details, faults };
  },

  requested: (upload, { request }) => ({ ...upload, request }),

  transferred: (upload, { news, now_ms }) => row.withNews(upload, news, now_ms),

  failed: (upload, { error }) => ({ ...upload, phase: "failed", failure: error }),

  reachable: (upload) => (upload.phase === "offline" ? row.queued(upload, true) : upload),

  pause: (it) => (is.isInFlight(it) ? { ...it, phase: "paused", failure: null } : it),

  resume: (it, _event, { isOnline }) => (it.phase === "paused" ? row.queued(it, isOnline) : it),

  retry: (upload, _event, { isOnline }) => {
    const isGone = upload.phase === "cancelled" || is.isLost(upload);
    return row.queued(isGone ? row.restarted(upload) : upload, isOnline);
  },
};

/** @type {{ [T in keyof PageEvents]: (state: State, event: PageEvents[T]) => State }} */
const pageHandlers = {
  restored(state, { saved }) {
    const [first] = state.uploads;
    const isUnused = first?.phase === "empty" && !is.holdsWork(first);
    const kept = saved.length && isUnused ? state.uploads.slice(1) : state.uploads;
    const found = saved.map((it, at) => row.restoredUpload(state.nextNumber + at, it, state.blank));
    return { ...state, uploads: [...kept, ...found], nextNumber: state.nextNumber + saved.length };
  },

  chosen(state, { choices, now, from }) {
    const focus = from ? { number: from, target: /** @type {const} */ ("panel") } : null;
    /** @type {State} */
    let next = { ...state, fileFaults: [], focus };
    const names = [];
    for (const choice of choices) {
      const fault = is.faultOf(next, choice);
      if (fault) next = { ...next, fileFaults: [...next.fileFaults, fault] };
      else next = withChoice(next, choice, now);
      if (!fault) names.push(choice.file.name);
    }
    const what = names.length > 1 ? `${names.length} files` : names[0];
    return { ...next, news: [...next.fileFaults, ...(what ? [`Uploading ${what}.`] : [])] };
  },

  mismatched(state, { number, message }) {
    const faults = [{ pointer: "/file", message }];
    const next = updated(state, number, (upload) => ({ ...upload, faults }));
    return { ...next, focus: { number, target: "fault" }, news: [message] };
  },

  submitted(state, { number }) {
    /** @param {Upload} it */
    const isMeant = (it) =>
      number === undefined ? is.isPublishable(it) && !it.publishing : it.number === number;
    const uploads = state.uploads.map((it) => (isMeant(it) ? row.submitted(it) : it));
    if (uploads.every(({ phase }) => phase === "empty")) {
      const words = "Choose the video file to publish.";
      return { ...state, uploads, fileFaults: [words], news: [words], focus: ON_FILES };
    }
    const first = uploads.find((it) => it.faults.length && isMeant(it));
    return { ...state, uploads, focus: first ? { number: first.number, target: "fault" } : null };
  },

  published(state, { number, video }) {
    const publishing = /** @type {const} */ ("published");
    const next = updated(state, number, (it) => ({ ...it, video, publishing, request: null }));
    if (is.isAlone(state, number)) return { ...next, destination: video.id };
    return { ...next, news: [`“${video.title}” is published.`] };
  },

  refused(state, { number, error }) {
    const next = updated(state, number, (upload) => row.withRefusal(upload, error));
    return error.faults.length ? { ...next, focus: { number, target: "fault" } } : next;
  },

  connected(state, { isOnline }) {
    const uploads = state.uploads.map((it) =>
      // Those that are under way come to a stop, and go on afterwards.
      is.isInFlight(it) && (!isOnline || it.phase === "offline") ? row.queued(it, isOnline) : it,
    );
    return { ...state, isOnline, uploads };
  },

  signedIn(state) {
    return { ...state, uploads: state.uploads.map((it) => row.signedIn(it, state.isOnline)) };
  },

  cancel(state, { number }) {
    if (is.isAlone(state, number)) return pageHandlers.remove(state, { number });
    const phase = /** @type {const} */ ("cancelled");
    return updated(state, number, (it) => ({ ...it, phase, publishing: "", failure: null }));
  },

  remove(state, { number }) {
    const at = state.uploads.findIndex((upload) => upload.number === number);
    const { uploads } = updated(state, number, (it) => row.emptied(it, state.blank));
    // The last row stays, and so does what was typed where no other file shares the page.
    const isAlone = is.isAlone(state, number);
    const left = uploads.filter(
      (it) => it.number !== number || uploads.length === 1 || (isAlone && is.isTyped(it)),
    );
    const next = left[Math.min(at, left.length - 1)];
    if (!next || next.phase === "empty") return { ...state, uploads: left, focus: ON_FILES };
    return { ...state, uploads: left, focus: { number: next.number, target: "panel" } };
  },

  copy(state, { number }) {
    const { categoryIds, tags, visibility } = is.uploadOf(state, number)?.details ?? state.blank;
    const others = state.uploads.filter((it) => it.number !== number && is.isUnpublished(it));
    const uploads = state.uploads.map((it) =>
      others.includes(it) ? row.withCopied(it, { categoryIds, tags, visibility }) : it,
    );
    const what = others.length === 1 ? "the other video" : `${others.length} other videos`;
    const news = [`Categories, tags and visibility are used for ${what}, too.`];
    return { ...state, uploads, news };
  },
};

/**
 * @param {State} state @param {number} number @param {(upload: Upload) => Upload} change
 * @returns {State}
 */
function updated(state, number, change) {
  const uploads = state.uploads.map((it) => (it.number === number ? change(it) : it));
  return { ...state, uploads };
}

/** @param {State} state @param {Choice} choice @param {number} now @returns {State} */
function withChoice(state, { file, id, match }, now) {
  /** @param {Upload} upload */
  const take = (upload) =>
    row.queued(row.withFile(upload, { file, id, saved_at: now }), state.isOnline);
  const number = match ?? state.uploads.find(({ phase }) => phase === "empty")?.number;
  if (number) return updated(state, number, take);
  const uploads = [...state.uploads, take(row.emptyUpload(state.nextNumber, state.blank))];
  return { ...state, uploads, nextNumber: state.nextNumber + 1 };
}
