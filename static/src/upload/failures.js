/** What can go wrong between this browser and storage, and whether it is worth another try. */

import { NoAnswer, Refused } from "../api.js";

/** @typedef {"" | "file_unreadable" | "etag_hidden" | "incomplete"} FailureCode */

/**
 * The file did not arrive. `status` is storage's answer, or 0 when there was none.
 * `code` is empty, or
 * - `file_unreadable`: the file was moved, changed or removed since it was chosen;
 * - `etag_hidden`: storage's CORS rules do not expose the ETag of its answers;
 * - `incomplete`: storage said yes to everything, and still does not have it.
 */
export class TransferFailed extends Error {
  /**
   * @param {number} status
   * @param {FailureCode} [code]
   */
  constructor(status, code = "") {
    super(`transfer failed with status ${status}${code && ` (${code})`}`);
    this.status = status;
    this.code = code;
  }
}

/** Refusals that say no more than that the upload has moved on: look at it again. */
const STALE_CODES = new Set([
  "upload_not_started",
  "upload_not_issued",
  "upload_gone",
  "parts_missing",
]);

/** Storage's or the portal's word on this very moment, not on the request. */
const PASSING_STATUSES = new Set([408, 425, 429]);

/**
 * The upload is no longer what this page takes it for; reading its state says what to do.
 * @param {unknown} error
 */
export function isStale(error) {
  if (error instanceof Refused) return STALE_CODES.has(error.code);
  return error instanceof TransferFailed && error.status === 404;
}

/** @param {unknown} error */
export function canRetry(error) {
  if (error instanceof NoAnswer || isStale(error)) return true;
  if (error instanceof Refused) return isPassing(error.status);
  // A new signature cures an expired one, and S3 answers some broken connections with 400.
  return error instanceof TransferFailed && error.code === "";
}

/**
 * The same request would get the same answer, but for an expired signature.
 * @param {unknown} error
 */
export function isDefinite(error) {
  if (!(error instanceof TransferFailed) || error.status === 0 || isStale(error)) return false;
  return !isPassing(error.status);
}

/** @param {number} status */
function isPassing(status) {
  return status >= 500 || PASSING_STATUSES.has(status);
}
