/**
 * The single state of the upload page, and its reducer. Pure: the previous state and the event
 * determine the next state. `store.js` runs the side effects.
 */

import { needsSignIn } from "../requests.js";
import { WHO_HAS_TO_SIGN_IN } from "./failures.js";
import * as is from "./selectors.js";
import * as own from "./upload.js";
import { appliedInWords, newsOf } from "./words.js";

/** Events after which details that were applied to all can't be undone. */
const CHANGES = new Set(["edited", "chosen", "submitted"]);

/** @typedef {own.Upload} Upload */
/** @typedef {import("../preflight/findings.js").Limits} Limits */
/**
 * `match` is the upload that the file continues or replaces; `fault` says why it does not, if
 * known.
 * @typedef {{ file: File, id: string, match: number | null, fault?: string }} Choice
 */
/**
 * `open` is the upload whose details are shown, 0 for none. `news` and `focus` belong to the last
 * event alone: what screen readers are told, and where the keyboard goes on. `blank` is what is
 * said of a video about which nothing was typed. `applied` are the uploads that got details of
 * another one, as they were before; none once anything else was changed.
 * @typedef {{ limits: Limits, uploads: Upload[], open: number, nextNumber: number,
 *   applied: Upload[], news: string[],
 *   blank: own.Details,
 *   focus: { number?: number, target: "line" | "fault" | "files" } | null }} State
 */
/**
 * Events of one upload, events of several, and the state of keyboard focus and announcements.
 * @typedef {{
 *   looked: { isStored: boolean, arrived_bytes: number },
 *   inspected: { inspection: own.Inspection }, pictured: { picture: string },
 *   edited: { details: own.Details, pointer: string },
 *   requested: { request: Upload["request"] },
 *   transferred: { news: import("./transfer.js").TransferNews, now_ms: number },
 *   failed: { error: Error }, followed: { processing: Upload["processing"] },
 *   pause: {}, resume: {}, retry: {},
 * }} OwnEvents
 * @typedef {{
 *   restored: { saved: own.Saved[] }, opened: { number: number },
 *   chosen: { choices: Choice[], now: number, from?: number },
 *   submitted: {},
 *   published: { number: number, video: NonNullable<Upload["video"]> },
 *   refused: { number: number, error: import("./failures.js").NotPublished },
 *   connected: {}, signedIn: {},
 *   cancel: { number: number }, remove: { number: number },
 *   copy: { number: number, mayLoosen?: boolean }, undo: {},
 * }} PageEvents
 * @typedef {{ [T in keyof OwnEvents]: { type: T, number: number } & OwnEvents[T] }[keyof OwnEvents]
 *   | { [T in keyof PageEvents]: { type: T } & PageEvents[T] }[keyof PageEvents]} UploadEvent
 */

/** @param {Limits} limits @param {own.Details} [blank] @returns {State} */
export function initialState(limits, blank = own.NO_DETAILS) {
  const none = { uploads: [], applied: [], news: [], focus: null };
  return { limits, blank, ...none, open: 0, nextNumber: 1 };
}

/** @param {State} before @param {UploadEvent} event @returns {State} */
export function reduce(before, event) {
  const applied = CHANGES.has(event.type) ? [] : before.applied;
  const changed = is.started(handled({ ...before, applied, news: [], focus: null }, event));
  const open = is.openAfter(before, changed);
  return { ...changed, open, news: [...changed.news, ...newsOf(before, changed)] };
}

/** @param {State} state @param {any} event @returns {State} */
function handled(state, event) {
  const change = ownHandlers[/** @type {keyof OwnEvents} */ (event.type)];
  if (change) return updated(state, event.number, (upload) => change(upload, event));
  return pageHandlers[/** @type {keyof PageEvents} */ (event.type)](state, event);
}

/** @type {{ [T in keyof OwnEvents]: (upload: Upload, event: OwnEvents[T]) => Upload }} */
const ownHandlers = {
  looked: (upload, { isStored, arrived_bytes }) =>
    // The upload's file may have been chosen in the meantime.
    is.isRestored(upload) ? own.withArrived(upload, isStored, arrived_bytes) : upload,

  inspected: (upload, { inspection }) => own.withInspection(upload, inspection),

  pictured: (upload, { picture }) => ({ ...upload, picture }),

  followed: (upload, { processing }) => ({ ...upload, processing }),

  edited: (upload, { details, pointer }) => {
    const faults = pointer ? is.without(upload.faults, pointer) : upload.faults;
    return { ...upload, details, faults };
  },

  requested: (upload, { request }) => ({ ...upload, request }),

  transferred: (upload, { news, now_ms }) => own.withNews(upload, news, now_ms),

  failed: (upload, { error }) => ({ ...upload, phase: "failed", failure: error }),

  pause: (it) => (is.isInFlight(it) ? { ...it, phase: "paused", failure: null } : it),

  resume: (it) => (it.phase === "paused" ? own.queued(it) : it),

  retry: (upload) => {
    const isGone = upload.phase === "cancelled" || is.isUnusable(upload);
    return own.queued(isGone ? own.restarted(upload) : upload);
  },
};

/** @type {{ [T in keyof PageEvents]: (state: State, event: PageEvents[T]) => State }} */
const pageHandlers = {
  restored(state, { saved }) {
    const found = saved.map((it, at) => own.restoredUpload(state.nextNumber + at, it));
    const nextNumber = state.nextNumber + saved.length;
    return { ...state, uploads: [...state.uploads, ...found], nextNumber };
  },

  opened: (state, { number }) => ({ ...state, open: number }),

  chosen(state, { choices, now, from }) {
    /** @type {State} */
    let next = { ...state, focus: from ? { number: from, target: "line" } : null };
    const names = [];
    for (const choice of choices) {
      const fault = choice.fault || is.faultOf(next, choice);
      if (fault && choice.match) next = withFileFault(next, choice.match, fault);
      else next = fault ? withRefused(next, choice, fault) : withChoice(next, choice, now);
      if (!fault) names.push(choice.file.name);
    }
    const what = names.length > 1 ? `${names.length} files` : names[0];
    return { ...next, news: [...next.news, ...(what ? [`Uploading ${what}.`] : [])] };
  },

  submitted(state) {
    const meant = state.uploads.filter((it) => is.isPublishable(it) && !it.publishing);
    const uploads = state.uploads.map((it) => (meant.includes(it) ? own.submitted(it) : it));
    const at = state.uploads.findIndex((it, n) => meant.includes(it) && uploads[n]?.faults.length);
    const number = uploads[at]?.number;
    if (!number) return { ...state, uploads };
    return { ...state, uploads, open: number, focus: { number, target: "fault" } };
  },

  published(state, { number, video }) {
    const done = { video, request: null };
    const next = updated(state, number, (it) => ({ ...it, ...done, publishing: "published" }));
    return { ...next, news: [`“${video.title}” is published.`] };
  },

  refused(state, { number, error }) {
    const next = updated(state, number, (upload) => {
      const { faults, words, needsUpload } = error;
      if (needsUpload)
        return { ...upload, faults, publishing: "", phase: "failed", failure: error };
      return { ...upload, faults, publishing: "", publishTrouble: words };
    });
    // Don't switch uploads while the editor is fixing another one.
    const isBusy = state.open !== number && is.openOf(state)?.faults.length;
    if (isBusy) return next;
    return {
      ...next,
      open: number,
      focus: error.faults.length ? { number, target: "fault" } : null,
    };
  },

  connected(state) {
    const uploads = state.uploads.map((it) => (is.isCutOff(it) ? own.queued(it) : it));
    return { ...state, uploads };
  },

  signedIn(state) {
    const uploads = state.uploads.map((upload) => {
      const isStopped = upload.phase === "failed" && needsSignIn(upload.failure);
      const next = isStopped ? own.queued(upload) : upload;
      return WHO_HAS_TO_SIGN_IN.has(next.publishTrouble) ? own.submitted(next) : next;
    });
    return { ...state, uploads };
  },

  cancel(state, { number }) {
    const none = { failure: null, publishing: /** @type {const} */ ("") };
    return updated(state, number, (it) => ({ ...it, ...none, phase: "cancelled" }));
  },

  remove(state, { number }) {
    const at = state.uploads.findIndex((upload) => upload.number === number);
    const uploads = state.uploads.filter((it) => it.number !== number);
    const next = uploads[Math.min(at, uploads.length - 1)];
    const focus = next ? { number: next.number, target: "line" } : { target: "files" };
    return { ...state, uploads, focus: /** @type {State["focus"]} */ (focus) };
  },

  copy(state, { number, mayLoosen }) {
    const { visibility, ...rest } = is.sharedOf(state, number);
    const isWide = is.loosenedBy(state, number).length > 0 && !mayLoosen;
    const copied = visibility && !isWide ? { ...rest, visibility } : rest;
    const applied = is.othersOf(state, number);
    const uploads = state.uploads.map((it) => {
      if (!applied.includes(it)) return it;
      const faults = copied.categoryIds?.length ? is.without(it.faults, "/categoryIds") : it.faults;
      return { ...it, faults, details: { ...it.details, ...copied } };
    });
    return { ...state, uploads, applied, news: [`${appliedInWords(applied)}.`] };
  },

  undo(state) {
    const uploads = state.uploads.map((it) => {
      const { details, faults } = state.applied.find(({ number }) => number === it.number) ?? it;
      return is.isUnpublished(it) ? { ...it, details, faults } : it;
    });
    return { ...state, uploads, applied: [], news: ["Undone."] };
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
  const take = (upload) => own.queued(own.withFile(upload, { file, id, saved_at: now }));
  if (match) return { ...updated(state, match, take), open: match };
  const number = state.nextNumber;
  const uploads = [...state.uploads, take(own.newUpload(number, state.blank))];
  const open = is.openOf(state)?.file && !is.isDiscarded(is.openOf(state)) ? state.open : number;
  return { ...state, uploads, open, nextNumber: number + 1 };
}

/** @param {State} state @param {Choice} choice @param {string} text why @returns {State} */
function withRefused(state, { file: { name: fileName, size: size_bytes } }, text) {
  const blank = { ...own.newUpload(state.nextNumber, state.blank), fileName, size_bytes };
  const title = "This file can’t be published";
  const findings = [{ code: "unsuitable", weight: /** @type {const} */ ("refuse"), title, text }];
  const upload = own.withInspection(blank, { facts: "", findings });
  const { nextNumber: number, uploads } = state;
  return { ...state, uploads: [...uploads, upload], nextNumber: number + 1 };
}

/**
 * @param {State} state @param {number} number of the upload that the file was meant for
 * @param {string} message @returns {State}
 */
function withFileFault(state, number, message) {
  const faults = [{ pointer: "/file", message }];
  const next = updated(state, number, (upload) => ({ ...upload, faults }));
  const news = [...state.news, message];
  return { ...next, news, open: number, focus: { number, target: "fault" } };
}
