/** State of one video on the upload page, and its transitions. Pure. */

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
 * Rate of a transfer: an exponential average, so that neither it nor the time left jumps with each
 * burst.
 * @typedef {{ speed_bps: number | null, sent_bytes: number, at_ms: number | null }} Rate
 */

const RATE_MEMORY_S = 4;
const RATE_STEP_S = 0.2;
/** A rate without measurements. @type {Rate} */
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
    /** Key in this browser's storage. */
    id: "",
    phase: /** @type {Phase} */ ("waiting"),
    /** Null if it has to be chosen again, or an earlier visit sent it. */
    file: /** @type {File | null} */ (null),
    fileName: "",
    size_bytes: 0,
    contentType: "",
    /** Distinguishes files of the same name and size. */
    fingerprint: "",
    /** Key in storage; empty until the portal has issued it. */
    key: "",
    /**
     * Bytes from which a reload continues, or the sent bytes of a single PUT. Decreases only when a
     * file is restarted; reaches the whole size only in `sent`.
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
    /** Shown beside the fields. */
    faults: /** @type {FieldFault[]} */ ([]),
    publishing: /** @type {"" | "wanted" | "publishing" | "published"} */ (""),
    publishTrouble: "",
    /** Pending request to publish, which may have succeeded. */
    request: /** @type {(Details & { fileName: string, key: string }) | null} */ (null),
    video: /** @type {{ id: string, title: string } | null} */ (null),
    /** Progress of the video; null while unknown. */
    processing: /** @type {import("./processing.js").Processing | null} */ (null),
    /** Time of the start, in milliseconds since the epoch. */
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
 * Accept a chosen file: send it, or the rest of it if it continues the upload. Typed details stay
 * even if it replaces another file.
 * @param {Upload} upload @param {{ file: File, id: string, saved_at: number }} choice
 * @returns {Upload} to be queued
 */
export function withFile(upload, { file, id, saved_at }) {
  const { name: fileName, size: size_bytes } = file;
  const faults = is.without(upload.faults, "/file");
  const chosen = { ...upload, file, fileName, size_bytes, faults, inspection: null, picture: "" };
  // A pending request to publish stays valid for a file that became unreadable.
  if (!is.lacksFile(upload)) chosen.publishing = "";
  if (is.isUnfinished(upload)) return is.isUnusable(upload) ? restarted(chosen) : chosen;
  const contentType = contentTypeOf(file) ?? "";
  const fresh = { ...restarted(chosen), id, contentType, fingerprint: "", saved_at };
  return prefilled({ ...fresh, arrived_bytes: null, publishTrouble: "" });
}

/**
 * Derive the title from the file's name, unless another was typed.
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

/** @param {Upload} upload @returns {Upload} */
export function queued(upload) {
  // A single PUT has stored nothing before its end.
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
  // Data in flight would be lost by a reload, and the last byte only counts once storage confirms
  // it.
  const kept_bytes = (is.isSentWhole(upload) ? sent_bytes : stored_bytes) ?? 0;
  next.sent_bytes = Math.max(upload.sent_bytes, Math.min(kept_bytes, upload.size_bytes - 1));
  // Bytes that were stored before do not count for the rate.
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
 * Request the publication, as soon as the file has arrived and the details are valid.
 * @param {Upload} upload @returns {Upload}
 */
export function submitted(upload) {
  const isBusy = upload.publishing === "publishing" || upload.publishing === "published";
  if (isBusy || upload.phase === "refused") return upload;
  const faults = is.faultsOf(upload);
  return { ...upload, faults, publishTrouble: "", publishing: faults.length ? "" : "wanted" };
}
