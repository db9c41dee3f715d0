/**
 * State of the upload page, and its reducer. Pure: the previous state and the event determine the
 * next state. `store.js` runs the side effects.
 */

import { formatNumber } from "../format.js";
import { gettext, ngettext } from "../messages.js";
import { needsSignIn } from "../people/session.js";
import { SIGN_IN_MESSAGES } from "./failures.js";
import * as is from "./selectors.js";
import { announcementsOf, appliedAnnouncement } from "./texts.js";
import * as own from "./upload.js";

/** Events after which applying details to all uploads can't be undone. */
const CHANGES = new Set(["edited", "chosen", "submitted"]);

/** @typedef {own.Upload} Upload */
/** @typedef {import("../preflight/findings.js").Limits} Limits */
/**
 * Chosen file. `match` is the number of the upload that it continues or replaces; `fault` says why
 * it doesn't, if known.
 * @typedef {{ file: File, id: string, match: number | null, fault?: string }} Choice
 */
/**
 * State of the page. `open` is the number of the upload whose details are shown, 0 for none.
 * `announcements` (for screen readers) and `focus` (the next keyboard focus) belong to the last
 * event alone. `blank` has the default details. `applied` has the uploads to which details of
 * another one were applied, as they were before; it is empty when this can't be undone.
 * @typedef {{ limits: Limits, uploads: Upload[], open: number, nextNumber: number,
 *   applied: Upload[], announcements: string[],
 *   blank: own.Details,
 *   focus: { number?: number, target: "line" | "fault" | "files" } | null }} State
 */
/**
 * Events of a single upload, and events of the page.
 * @typedef {{
 *   progressRead: { isStored: boolean, arrived_bytes: number },
 *   inspected: { inspection: own.Inspection }, pictureMade: { picture: string },
 *   stillMade: { still: string },
 *   partMoved: { draft: own.Draft }, partChosen: { id: string, now: number, isWhole: boolean },
 *   edited: { details: own.Details, pointer: string },
 *   requested: { request: Upload["request"] },
 *   transferred: { update: import("./transfer.js").TransferUpdate, now_ms: number },
 *   failed: { error: Error }, processingRead: { processing: Upload["processing"] },
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

/**
 * Return the state of a page without files.
 * @param {Limits} limits @param {own.Details} [blank] @returns {State}
 */
export function initialState(limits, blank = own.NO_DETAILS) {
  const none = { uploads: [], applied: [], announcements: [], focus: null };
  return { limits, blank, ...none, open: 0, nextNumber: 1 };
}

/**
 * Return the state after an event.
 * @param {State} before @param {UploadEvent} event @returns {State}
 */
export function reduce(before, event) {
  const applied = CHANGES.has(event.type) ? [] : before.applied;
  const changed = is.started(
    applyEvent({ ...before, applied, announcements: [], focus: null }, event),
  );
  const open = is.openAfter(before, changed);
  return {
    ...changed,
    open,
    announcements: [...changed.announcements, ...announcementsOf(before, changed)],
  };
}

/**
 * Apply an event to its upload or to the page.
 * @param {State} state @param {any} event @returns {State}
 */
function applyEvent(state, event) {
  const change = ownHandlers[/** @type {keyof OwnEvents} */ (event.type)];
  if (change) return updateUpload(state, event.number, (upload) => change(upload, event));
  return pageHandlers[/** @type {keyof PageEvents} */ (event.type)](state, event);
}

/** @type {{ [T in keyof OwnEvents]: (upload: Upload, event: OwnEvents[T]) => Upload }} */
const ownHandlers = {
  progressRead: (upload, { isStored, arrived_bytes }) =>
    // The editor may have chosen the upload's file in the meantime.
    is.isRestored(upload) ? own.withArrived(upload, isStored, arrived_bytes) : upload,

  inspected: (upload, { inspection }) => own.withInspection(upload, inspection),

  pictureMade: (upload, { picture }) => ({ ...upload, picture }),

  stillMade: (upload, { still }) => ({ ...upload, still }),

  partMoved: (upload, { draft }) => own.withDraft(upload, draft),

  partChosen: (upload, choice) => own.trimmed(upload, choice),

  processingRead: (upload, { processing }) => ({ ...upload, processing }),

  edited: (upload, { details, pointer }) => {
    const faults = pointer ? is.without(upload.faults, pointer) : upload.faults;
    return { ...upload, details, faults };
  },

  requested: (upload, { request }) => ({ ...upload, request }),

  transferred: (upload, { update, now_ms }) => own.withTransferUpdate(upload, update, now_ms),

  failed: (upload, { error }) => ({ ...upload, phase: "failed", failure: error }),

  pause: (upload) =>
    is.isInFlight(upload) ? { ...upload, phase: "paused", failure: null } : upload,

  resume: (upload) => (upload.phase === "paused" ? own.queued(upload) : upload),

  retry: (upload) => {
    const isGone = upload.phase === "cancelled" || is.isUnusable(upload);
    return own.queued(isGone ? own.restarted(upload) : upload);
  },
};

/** @type {{ [T in keyof PageEvents]: (state: State, event: PageEvents[T]) => State }} */
const pageHandlers = {
  restored(state, { saved }) {
    const restored = saved.map((upload, index) =>
      own.restoredUpload(state.nextNumber + index, upload),
    );
    const nextNumber = state.nextNumber + saved.length;
    return { ...state, uploads: [...state.uploads, ...restored], nextNumber };
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
    const announcements = names.length ? [uploadingText(names)] : [];
    return { ...next, announcements: [...next.announcements, ...announcements] };
  },

  submitted(state) {
    const isSubmitted = (/** @type {Upload} */ upload) =>
      is.isPublishable(upload) && !upload.publishing;
    const uploads = state.uploads.map((upload) =>
      isSubmitted(upload) ? own.submitted(upload) : upload,
    );
    const faulty = state.uploads.findIndex(
      (upload, index) => isSubmitted(upload) && uploads[index]?.faults.length,
    );
    const number = uploads[faulty]?.number;
    if (!number) return { ...state, uploads };
    return { ...state, uploads, open: number, focus: { number, target: "fault" } };
  },

  published(state, { number, video }) {
    const next = updateUpload(state, number, (upload) => {
      return { ...upload, video, request: null, publishing: "published" };
    });
    const announcement = gettext("“%(title)s” is published.", { title: video.title });
    return { ...next, announcements: [announcement] };
  },

  refused(state, { number, error }) {
    const next = updateUpload(state, number, (upload) => {
      const { faults, message, needsUpload } = error;
      if (needsUpload)
        return { ...upload, faults, publishing: "", phase: "failed", failure: error };
      return { ...upload, faults, publishing: "", publishError: message };
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
    const uploads = state.uploads.map((upload) =>
      is.isCutOff(upload) ? own.queued(upload) : upload,
    );
    return { ...state, uploads };
  },

  signedIn(state) {
    const uploads = state.uploads.map((upload) => {
      const isStopped = upload.phase === "failed" && needsSignIn(upload.failure);
      const next = isStopped ? own.queued(upload) : upload;
      return SIGN_IN_MESSAGES.has(next.publishError) ? own.submitted(next) : next;
    });
    return { ...state, uploads };
  },

  cancel(state, { number }) {
    return updateUpload(state, number, (upload) => {
      return { ...upload, failure: null, publishing: "", phase: "cancelled" };
    });
  },

  remove(state, { number }) {
    const at = state.uploads.findIndex((upload) => upload.number === number);
    const uploads = state.uploads.filter((upload) => upload.number !== number);
    const next = uploads[Math.min(at, uploads.length - 1)];
    const focus = next ? { number: next.number, target: "line" } : { target: "files" };
    return { ...state, uploads, focus: /** @type {State["focus"]} */ (focus) };
  },

  copy(state, { number, mayLoosen }) {
    const { visibility, ...rest } = is.sharedOf(state, number);
    const isWide = is.loosenedBy(state, number).length > 0 && !mayLoosen;
    const copied = visibility && !isWide ? { ...rest, visibility } : rest;
    const applied = is.othersOf(state, number);
    const uploads = state.uploads.map((upload) => {
      if (!applied.includes(upload)) return upload;
      const faults = Object.keys(copied).reduce(
        (left, name) => is.without(left, `/${name}`),
        upload.faults,
      );
      return { ...upload, faults, details: { ...upload.details, ...copied } };
    });
    return { ...state, uploads, applied, announcements: [appliedAnnouncement(applied)] };
  },

  undo(state) {
    const uploads = state.uploads.map((upload) => {
      const before = state.applied.find(({ number }) => number === upload.number) ?? upload;
      const { details, faults } = before;
      return is.isUnpublished(upload) ? { ...upload, details, faults } : upload;
    });
    // Translators: announcement after the button "Undo".
    const announcement = gettext("Undone.");
    return { ...state, uploads, applied: [], announcements: [announcement] };
  },
};

/**
 * Change the upload with this number.
 * @param {State} state @param {number} number @param {(upload: Upload) => Upload} change
 * @returns {State}
 */
function updateUpload(state, number, change) {
  const uploads = state.uploads.map((upload) =>
    upload.number === number ? change(upload) : upload,
  );
  return { ...state, uploads };
}

/** Return the announcement of chosen files. @param {string[]} names of one or more */
function uploadingText(names) {
  const [name = ""] = names;
  const { length } = names;
  if (length === 1) return gettext("Uploading %(name)s.", { name });
  const count = formatNumber(length);
  return ngettext("Uploading %(count)s file.", "Uploading %(count)s files.", length, { count });
}

/**
 * Let a chosen file continue or replace its upload, or add an upload.
 * @param {State} state @param {Choice} choice @param {number} now @returns {State}
 */
function withChoice(state, { file, id, match }, now) {
  /** @param {Upload} upload */
  const take = (upload) => own.queued(own.withFile(upload, { file, id, saved_at: now }));
  if (match) return { ...updateUpload(state, match, take), open: match };
  const number = state.nextNumber;
  const uploads = [...state.uploads, take(own.newUpload(number, state.blank))];
  const open = is.openOf(state)?.file && !is.isDiscarded(is.openOf(state)) ? state.open : number;
  return { ...state, uploads, open, nextNumber: number + 1 };
}

/**
 * Add a chosen file that is not uploaded.
 * @param {State} state @param {Choice} choice @param {string} text the reason @returns {State}
 */
function withRefused(state, { file: { name: fileName, size: size_bytes } }, text) {
  const blank = { ...own.newUpload(state.nextNumber, state.blank), fileName, size_bytes };
  const title = gettext("This file can’t be published");
  const findings = [{ code: "unsuitable", weight: /** @type {const} */ ("refuse"), title, text }];
  const upload = own.withInspection(blank, { facts: "", findings, canTrim: false });
  const { nextNumber: number, uploads } = state;
  return { ...state, uploads: [...uploads, upload], nextNumber: number + 1 };
}

/**
 * Show why a chosen file doesn't continue its upload.
 * @param {State} state @param {number} number of the upload @param {string} message
 * @returns {State}
 */
function withFileFault(state, number, message) {
  const faults = [{ pointer: "/file", message }];
  const next = updateUpload(state, number, (upload) => ({ ...upload, faults }));
  const announcements = [...state.announcements, message];
  return { ...next, announcements, open: number, focus: { number, target: "fault" } };
}
