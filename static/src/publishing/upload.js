/** State of one video on the upload page, and its transitions. Pure. */

import { repackableByName } from "../preflight/containers.js";
import { sentTypeOf } from "../preflight/findings.js";
import * as is from "./selectors.js";

/**
 * Phase of an upload:
 * - `unfinished`: started by an earlier visit, needs its file to be chosen again;
 * - `waiting`, `sending`, `confirming`, `sent`: steps of the transfer to storage;
 * - `paused`, `failed`, `cancelled`: continues when the editor decides so;
 * - `refused`: the portal can't publish the file.
 * @typedef {"unfinished" | "waiting" | "sending" | "confirming" | "sent"
 *   | "paused" | "failed" | "cancelled" | "refused"} Phase
 * @typedef {{ title: string, description: string, categoryIds: number[], tags: string,
 *   visibility: string, share: string, series: string }} Details an empty `visibility` means the
 *   portal's default, `share` has names of accounts and groups, divided by commas, and `series` is
 *   the id of a series to add the video to, empty for none
 * @typedef {import("./saved.js").Saved} Saved
 * @typedef {import("../preflight/findings.js").Inspection} Inspection
 * @typedef {import("../requests.js").FieldFault} FieldFault
 */

/** @typedef {import("../repack/repack.js").Trim} Trim */
/** @typedef {Trim & { film_s: number }} Draft a part of a film, and the film's length */
/** @typedef {ReturnType<typeof newUpload>} Upload */

/** @type {Details} */
export const NO_DETAILS = {
  title: "",
  description: "",
  categoryIds: [],
  tags: "",
  visibility: "",
  share: "",
  series: "",
};

/**
 * Rate of a transfer: an exponential average, so that the rate and the time left don't jump.
 * @typedef {{ speed_bps: number | null, sent_bytes: number, at_ms: number | null }} Rate
 */

const RATE_MEMORY_S = 4;
const RATE_STEP_S = 0.2;
/** Rate without measurements. @type {Rate} */
const NO_RATE = { speed_bps: null, sent_bytes: 0, at_ms: null };

/**
 * Return the rate after a measurement. It has a speed when two measurements are far enough apart.
 * @param {Rate} rate @param {number} sent_bytes total @param {number} now_ms @returns {Rate}
 */
function updateRate(rate, sent_bytes, now_ms) {
  if (rate.at_ms === null) return { speed_bps: null, sent_bytes, at_ms: now_ms };
  const elapsed_s = (now_ms - rate.at_ms) / 1000;
  if (elapsed_s < RATE_STEP_S) return rate;
  const current_bps = Math.max(0, sent_bytes - rate.sent_bytes) / elapsed_s;
  const before_bps = rate.speed_bps ?? current_bps;
  const weight = 1 - Math.exp(-elapsed_s / RATE_MEMORY_S);
  const speed_bps = before_bps + weight * (current_bps - before_bps);
  return { speed_bps, sent_bytes, at_ms: now_ms };
}

/** Return a new upload. @param {number} number of its line @param {Details} [details] */
export function newUpload(number, details = NO_DETAILS) {
  return {
    number,
    /** Key in this browser's storage. */
    id: "",
    phase: /** @type {Phase} */ ("waiting"),
    /** Null for an upload of an earlier visit. */
    file: /** @type {File | null} */ (null),
    fileName: "",
    /** Size of what is sent; of a part of a film it is an estimate. */
    size_bytes: 0,
    file_bytes: 0,
    contentType: "",
    /** Format of a file that is repacked to MP4 while it is sent. */
    repackedFrom: /** @type {import("../preflight/containers.js").Container | null} */ (null),
    /** Part of the film that is sent; null for all of it. */
    trim: /** @type {Trim | null} */ (null),
    /** Part that is being chosen, while the sending is paused. */
    draft: /** @type {Draft | null} */ (null),
    /** Picture of a film of sound alone, in JSON, which stays the same if the upload continues. */
    still: "",
    /** Distinguishes files of the same name and size. */
    fingerprint: "",
    /** Key in storage; empty until the portal has issued it. */
    key: "",
    /**
     * Bytes in storage that a reload keeps, or the sent bytes of a single PUT. Decreases only when
     * the upload restarts, and reaches the file's size only in `sent`.
     */
    sent_bytes: 0,
    /** Bytes in storage of an unfinished upload; null if unknown. */
    arrived_bytes: /** @type {number | null} */ (null),
    rate: NO_RATE,
    /** Whether the transfer has had no progress for some seconds. */
    isSilent: false,
    /** The reason in `failed`; before, the error that is being retried. */
    failure: /** @type {Error | null} */ (null),
    /** Result of the inspection. */
    inspection: /** @type {Inspection | null} */ (null),
    /** URL of the first frame; empty without one. */
    picture: "",
    /** As typed. */
    details,
    /** Title that was derived from the file's name. */
    prefilledTitle: "",
    /** Details that are prefilled or saved with the upload, so that losing them is harmless. */
    cleanDetails: details,
    /** Faults shown beside the fields. */
    faults: /** @type {FieldFault[]} */ ([]),
    publishing: /** @type {"" | "requested" | "publishing" | "published"} */ (""),
    publishError: "",
    /** Request to publish without a response, which may have succeeded. */
    request: /** @type {(Details & { fileName: string, key: string }) | null} */ (null),
    video: /** @type {{ id: string, title: string } | null} */ (null),
    /** Progress of the video; null while unknown. */
    processing: /** @type {import("./processing.js").Processing | null} */ (null),
    /** Time of the start, in milliseconds since the epoch. */
    saved_at: 0,
  };
}

/**
 * Return the upload of an earlier visit. Earlier versions of this page saved fewer details.
 * @param {number} number @param {Saved} saved @returns {Upload}
 */
export function restoredUpload(number, { isStored, ...known }) {
  const details = { ...NO_DETAILS, ...known.details };
  const request = known.request && { ...NO_DETAILS, ...known.request };
  const file_bytes = known.file_bytes ?? known.size_bytes;
  const upload = { ...newUpload(number, details), ...known, file_bytes, details, request };
  return withArrived(upload, isStored, null);
}

/**
 * Set the progress of an upload of an earlier visit.
 * @param {Upload} upload @param {boolean} isStored whether storage has the whole file
 * @param {number | null} arrived_bytes null if unknown @returns {Upload}
 */
export function withArrived(upload, isStored, arrived_bytes) {
  const sent_bytes = isStored
    ? upload.size_bytes
    : Math.min(arrived_bytes ?? 0, upload.size_bytes - 1);
  return { ...upload, phase: isStored ? "sent" : "unfinished", sent_bytes, arrived_bytes };
}

/**
 * Accept a chosen file, which continues the upload or replaces its file. Typed details are kept.
 * @param {Upload} upload @param {{ file: File, id: string, saved_at: number }} choice
 * @returns {Upload} to be queued
 */
export function withFile(upload, { file, id, saved_at }) {
  const { name: fileName, size: file_bytes } = file;
  const size_bytes = is.isUnfinished(upload) ? upload.size_bytes : file_bytes;
  const faults = is.without(upload.faults, "/file");
  const withNewFile = {
    ...upload,
    file,
    fileName,
    size_bytes,
    file_bytes,
    faults,
    inspection: null,
    picture: "",
  };
  // A pending request to publish stays valid for a file that became unreadable.
  if (!is.lacksFile(upload)) withNewFile.publishing = "";
  if (is.isUnfinished(upload)) return is.isUnusable(upload) ? restarted(withNewFile) : withNewFile;
  const repackedFrom = repackableByName(file.name);
  const contentType = sentTypeOf(file) ?? "";
  const kind = { contentType, repackedFrom, still: "", trim: null };
  const newTransfer = { ...restarted(withNewFile), id, ...kind, fingerprint: "", saved_at };
  return prefilled({ ...newTransfer, arrived_bytes: null, publishError: "" });
}

/**
 * Derive the title from the file's name, unless the editor typed another one.
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

/** Restart the upload from the beginning. @param {Upload} upload @returns {Upload} */
export function restarted(upload) {
  return { ...upload, key: "", sent_bytes: 0, request: null };
}

/**
 * Pause the upload while a part of its film is chosen.
 * @param {Upload} upload @param {Draft} draft @returns {Upload}
 */
export function withDraft(upload, draft) {
  if (!is.canTrim(upload)) return upload;
  const phase = is.isInFlight(upload) ? "paused" : upload.phase;
  return { ...upload, draft, phase, failure: phase === "paused" ? null : upload.failure };
}

/**
 * Restart the upload with the part that was chosen, or with the whole film.
 * @param {Upload} upload @param {{ id: string, now: number, isWhole: boolean }} choice
 * @returns {Upload}
 */
export function trimmed(upload, { id, now, isWhole }) {
  const { draft, file_bytes } = upload;
  if (!draft || !is.canTrim(upload)) return upload;
  const { start_s, end_s, film_s } = draft;
  const isAll = isWhole || (start_s <= 0 && end_s >= film_s);
  if (isAll && !upload.trim) return queued(upload);
  const share = isAll ? 1 : (end_s - start_s) / film_s;
  const size_bytes = Math.max(Math.round(file_bytes * share), 1);
  const trim = isAll ? null : { start_s, end_s };
  const next = { ...restarted(upload), id, saved_at: now, size_bytes, trim, still: "" };
  return queued({ ...next, arrived_bytes: null });
}

/** Let the upload wait for its turn. @param {Upload} upload @returns {Upload} */
export function queued(upload) {
  // An interrupted single PUT stores nothing.
  const sent_bytes = is.isSentWhole(upload) ? 0 : upload.sent_bytes;
  return { ...upload, phase: "waiting", draft: null, failure: null, sent_bytes, rate: NO_RATE };
}

/**
 * Apply an update from the transfer.
 * @param {Upload} upload @param {import("./transfer.js").TransferUpdate} update
 * @param {number} now_ms
 * @returns {Upload}
 */
export function withTransferUpdate(upload, { sent_bytes, stored_bytes, trouble, ...rest }, now_ms) {
  const next = { ...upload, ...rest };
  if (trouble !== undefined) next.failure = trouble;
  if (rest.phase === "sent") return { ...next, sent_bytes: upload.size_bytes, failure: null };
  const reported_bytes = sent_bytes ?? stored_bytes;
  if (reported_bytes === undefined) return next;
  // A reload loses data in flight, and the last byte counts only after the confirmation by storage.
  const kept_bytes = (is.isSentWhole(upload) ? sent_bytes : stored_bytes) ?? 0;
  next.sent_bytes = Math.max(upload.sent_bytes, Math.min(kept_bytes, upload.size_bytes - 1));
  // Bytes of earlier transfers don't count for the rate.
  const previousRate = sent_bytes === undefined ? NO_RATE : upload.rate;
  next.rate = updateRate(previousRate, reported_bytes, now_ms);
  return next;
}

/**
 * Set the result of the inspection, which may refuse the file.
 * @param {Upload} upload @param {Inspection} inspection @returns {Upload}
 */
export function withInspection(upload, inspection) {
  const isRefused = inspection.findings.some(({ weight }) => weight === "refuse");
  if (!isRefused) return { ...upload, inspection };
  return { ...upload, inspection, phase: "refused", publishing: "", failure: null };
}

/**
 * Request the publication, which starts when the file is stored. Invalid details prevent it.
 * @param {Upload} upload @returns {Upload}
 */
export function submitted(upload) {
  const isBusy = upload.publishing === "publishing" || upload.publishing === "published";
  if (isBusy || upload.phase === "refused") return upload;
  const faults = is.faultsOf(upload);
  return { ...upload, faults, publishError: "", publishing: faults.length ? "" : "requested" };
}
