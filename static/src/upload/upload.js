/** One video on the upload page as plain state, and what happens to it. Pure. */

import { contentTypeOf } from "../preflight/findings.js";
import * as is from "./selectors.js";

/**
 * - `unfinished`: begun by an earlier visit, its file has to be chosen again;
 * - `waiting`, `sending`, `confirming`, `sent`: the way into storage;
 * - `paused`, `failed`, `cancelled`: goes on when the editor says so;
 * - `refused`: the portal is sure not to publish this file.
 * @typedef {"unfinished" | "waiting" | "sending" | "confirming" | "sent"
 *   | "paused" | "failed" | "cancelled" | "refused"} Phase
 * @typedef {{ title: string, description: string, categoryIds: number[], tags: string,
 *   visibility: string }} Details `visibility` is empty for what the portal's setting says
 * @typedef {import("./saved.js").Saved} Saved
 * @typedef {import("../preflight/findings.js").Inspection} Inspection
 * @typedef {import("../requests.js").FieldFault} FieldFault
 */

/** @typedef {ReturnType<typeof newUpload>} Upload */

/** @type {Details} */
export const NO_DETAILS = { title: "", description: "", categoryIds: [], tags: "", visibility: "" };

/**
 * Speed is an average that forgets slowly, so that neither it nor the time left jumps with each
 * burst.
 * @typedef {{ speed_bps: number | null, sent_bytes: number, at_ms: number | null }} Rate
 */

const RATE_MEMORY_S = 4;
const RATE_STEP_S = 0.2;
/** Nothing was measured yet. @type {Rate} */
const NO_RATE = { speed_bps: null, sent_bytes: 0, at_ms: null };

/**
 * @param {Rate} rate @param {number} sent_bytes altogether @param {number} now_ms
 * @returns {Rate} with a speed once two measurements are far enough apart
 */
function measured(rate, sent_bytes, now_ms) {
  if (rate.at_ms === null) return { speed_bps: null, sent_bytes, at_ms: now_ms };
  const elapsed_s = (now_ms - rate.at_ms) / 1000;
  if (elapsed_s < RATE_STEP_S) return rate;
  const current_bps = Math.max(0, sent_bytes - rate.sent_bytes) / elapsed_s;
  const before_bps = rate.speed_bps ?? current_bps;
  const weight = 1 - Math.exp(-elapsed_s / RATE_MEMORY_S);
  const speed_bps = before_bps + weight * (current_bps - before_bps);
  return { speed_bps, sent_bytes, at_ms: now_ms };
}

/** @param {number} number of its line @param {Details} [details] */
export function newUpload(number, details = NO_DETAILS) {
  return {
    number,
    /** What it is kept under in this browser. */
    id: "",
    phase: /** @type {Phase} */ ("waiting"),
    /** Null where it has to be chosen again, or an earlier visit sent it. */
    file: /** @type {File | null} */ (null),
    fileName: "",
    size_bytes: 0,
    contentType: "",
    /** Tells the file from others of its name and size. */
    fingerprint: "",
    /** In storage; empty until the portal has issued it. */
    key: "",
    /**
     * What a reload goes on from, or what was sent of a file that is sent whole. Goes down only
     * where a file begins anew; the whole size only in `sent`.
     */
    sent_bytes: 0,
    /** Of an unfinished upload; null when unknown. */
    arrived_bytes: /** @type {number | null} */ (null),
    rate: NO_RATE,
    /** Nothing was heard of its transfer for some seconds. */
    isSilent: false,
    /** In `failed` the reason; before, what is being tried again. */
    failure: /** @type {Error | null} */ (null),
    /** What was found in the file. */
    inspection: /** @type {Inspection | null} */ (null),
    /** The first frame as an address; empty where there is none. */
    picture: "",
    /** As typed. */
    details,
    /** Made from the file's name. */
    prefilledTitle: "",
    /** What nobody would miss: prefilled, or kept with the upload. */
    cleanDetails: details,
    /** Shown beside the fields. */
    faults: /** @type {FieldFault[]} */ ([]),
    publishing: /** @type {"" | "wanted" | "publishing" | "published"} */ (""),
    publishTrouble: "",
    /** To publish, which the portal may have done. */
    request: /** @type {(Details & { fileName: string, key: string }) | null} */ (null),
    video: /** @type {{ id: string, title: string } | null} */ (null),
    /** Of the video; null while unknown. */
    processing: /** @type {import("./processing.js").Processing | null} */ (null),
    /** When it was begun, in milliseconds since the epoch. */
    saved_at: 0,
  };
}

/**
 * @param {number} number @param {Saved} saved by an earlier visit @returns {Upload}
 */
export function restoredUpload(number, { isStored, ...known }) {
  return withArrived({ ...newUpload(number, known.details), ...known }, isStored, null);
}

/**
 * @param {Upload} upload of an earlier visit @param {boolean} isStored storage has the whole file
 * @param {number | null} arrived_bytes @returns {Upload}
 */
export function withArrived(upload, isStored, arrived_bytes) {
  const sent_bytes = isStored
    ? upload.size_bytes
    : Math.min(arrived_bytes ?? 0, upload.size_bytes - 1);
  return { ...upload, phase: isStored ? "sent" : "unfinished", sent_bytes, arrived_bytes };
}

/**
 * A file was chosen: it is sent, or the rest of it where it continues the upload. What was typed
 * stays also where it takes the place of another file.
 * @param {Upload} upload @param {{ file: File, id: string, saved_at: number }} choice
 * @returns {Upload} to be queued
 */
export function withFile(upload, { file, id, saved_at }) {
  const { name: fileName, size: size_bytes } = file;
  const faults = is.without(upload.faults, "/file");
  const chosen = { ...upload, file, fileName, size_bytes, faults, inspection: null, picture: "" };
  // For a file that went away on its way, what was asked for still holds.
  if (!is.lacksFile(upload)) chosen.publishing = "";
  if (is.isUnfinished(upload)) return is.isUnusable(upload) ? restarted(chosen) : chosen;
  const contentType = contentTypeOf(file) ?? "";
  const fresh = { ...restarted(chosen), id, contentType, fingerprint: "", saved_at };
  return prefilled({ ...fresh, arrived_bytes: null, publishTrouble: "" });
}

/**
 * The title is the file's name, unless something else was typed.
 * @param {Upload} upload @returns {Upload}
 */
function prefilled(upload) {
  if (upload.details.title !== upload.prefilledTitle) return upload;
  const name = upload.fileName.replace(/\.[^.]+$/, "");
  const prefilledTitle = name.replace(/[_\s]+/g, " ").trim();
  const details = { ...upload.details, title: prefilledTitle };
  const cleanDetails = is.isTyped(upload) ? upload.cleanDetails : details;
  const faults = is.without(upload.faults, "/title");
  return { ...upload, prefilledTitle, details, cleanDetails, faults };
}

/** Sending begins again from nothing. @param {Upload} upload @returns {Upload} */
export function restarted(upload) {
  return { ...upload, key: "", sent_bytes: 0, request: null };
}

/** @param {Upload} upload @returns {Upload} */
export function queued(upload) {
  // Of what is sent as a whole nothing has arrived before all of it has.
  const sent_bytes = is.isSentWhole(upload) ? 0 : upload.sent_bytes;
  return { ...upload, phase: "waiting", failure: null, sent_bytes, rate: NO_RATE };
}

/**
 * @param {Upload} upload @param {import("./transfer.js").TransferNews} news @param {number} now_ms
 * @returns {Upload}
 */
export function withNews(upload, { sent_bytes, stored_bytes, trouble, ...rest }, now_ms) {
  const next = { ...upload, ...rest };
  if (trouble !== undefined) next.failure = trouble;
  if (rest.phase === "sent") return { ...next, sent_bytes: upload.size_bytes, failure: null };
  const told_bytes = sent_bytes ?? stored_bytes;
  if (told_bytes === undefined) return next;
  // What is on its way would be lost by a reload, and the last byte only counts once storage says so.
  const kept_bytes = (is.isSentWhole(upload) ? sent_bytes : stored_bytes) ?? 0;
  next.sent_bytes = Math.max(upload.sent_bytes, Math.min(kept_bytes, upload.size_bytes - 1));
  // What was there before has not been sent just now.
  const since = sent_bytes === undefined ? NO_RATE : upload.rate;
  next.rate = measured(since, told_bytes, now_ms);
  return next;
}

/** @param {Upload} upload @param {Inspection} inspection of its file @returns {Upload} */
export function withInspection(upload, inspection) {
  const isRefused = inspection.findings.some(({ weight }) => weight === "refuse");
  if (!isRefused) return { ...upload, inspection };
  return { ...upload, inspection, phase: "refused", publishing: "", failure: null };
}

/**
 * Publish was pressed: it happens as soon as the file has arrived, if the details are right.
 * @param {Upload} upload @returns {Upload}
 */
export function submitted(upload) {
  const isBusy = upload.publishing === "publishing" || upload.publishing === "published";
  if (isBusy || upload.phase === "refused") return upload;
  const faults = is.faultsOf(upload);
  return { ...upload, faults, publishTrouble: "", publishing: faults.length ? "" : "wanted" };
}
