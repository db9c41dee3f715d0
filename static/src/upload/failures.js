/**
 * Failures of an upload: whether and at what cost they are retried, their names and their remedies.
 */

import { SOMEONE_ELSE, SomeoneElse } from "../accounts/sign-in-again.js";
import { Backoff } from "../backoff.js";
import { formatWhen } from "../format.js";
import { isSignedOut, NoAnswer, needsSignIn, Refused, SIGNED_OUT } from "../requests.js";

/**
 * Cost of an attempt in the retry policy's budget: a long attempt spends most of its time sending.
 */
const ATTEMPT_COST_MS = 10_000;
/** Cost of a lasting refusal: the third in a row is the last. */
const LASTING_COST_MS = 50_000;
/** Refusals that show that this page's state of the upload is outdated. */
const STALE_CODES = ["upload_not_started", "upload_not_issued", "upload_gone", "parts_missing"];
/** Statuses of temporary conditions. */
const PASSING_STATUSES = [408, 425, 429];
/** Refusals of publishing until someone signs in. */
export const WHO_HAS_TO_SIGN_IN = new Set([SIGNED_OUT, SOMEONE_ELSE]);

/** @typedef {"" | "file_unreadable" | "etag_hidden" | "incomplete"} FailureCode */

/**
 * The file did not arrive. `status` is storage's response, or 0 without one. `code` is empty, or
 * - `file_unreadable`: the file was moved, changed or removed since it was chosen;
 * - `etag_hidden`: storage's CORS rules do not expose the ETag;
 * - `incomplete`: storage accepted all parts but does not have the file.
 */
export class TransferFailed extends Error {
  /** @param {number} status @param {FailureCode} [code] */
  constructor(status, code = "") {
    super(`transfer failed with status ${status}${code && ` (${code})`}`);
    this.status = status;
    this.code = code;
  }
}

/** The portal refused to publish. */
export class NotPublished extends Error {
  /**
   * @param {import("../requests.js").FieldFault[]} faults of the form's fields
   * @param {string} words for what has no field
   * @param {boolean} needsUpload whether the file is what is at fault
   */
  constructor(faults, words, needsUpload) {
    super(words);
    this.faults = faults;
    this.words = words;
    this.needsUpload = needsUpload;
  }
}

/** Return whether the connection was missing, or missing for too long. @param {unknown} error */
export function isDisconnected(error) {
  if (error instanceof NoAnswer) return true;
  return error instanceof TransferFailed && error.status === 0 && error.code === "";
}

/** Return whether the upload's state has to be read next. @param {unknown} error */
export function isStale(error) {
  if (error instanceof Refused) return STALE_CODES.includes(error.code);
  return error instanceof TransferFailed && error.status === 404;
}

/** @param {number} status */
export function isPassing(status) {
  return status >= 500 || PASSING_STATUSES.includes(status);
}

/** @param {unknown} error */
export function canRetry(error) {
  if (error instanceof NoAnswer || isStale(error)) return true;
  if (error instanceof Refused) return isPassing(error.status);
  // A new signature replaces an expired one, and S3 responds to some broken connections with 400.
  return error instanceof TransferFailed && error.code === "";
}

/**
 * Return whether the same request would fail again, except for an expired signature.
 * @param {unknown} error
 */
function isLasting(error) {
  if (!(error instanceof TransferFailed) || error.status === 0 || isStale(error)) return false;
  return !isPassing(error.status);
}

/** Errors whose budget is spent; an outer level must not start again. @type {WeakSet<object>} */
const final = new WeakSet();

/**
 * Repeat an attempt with growing, jittered pauses until it succeeds.
 * @template T
 * @param {(succeeded: () => void) => Promise<T>} attempt may call `succeeded` when part of its work
 *   is done, which renews the budget
 * @param {{ signal?: AbortSignal, isWorthIt?: (error: unknown) => boolean,
 *   onTrouble?: (error: Error) => void }} [options] `signal` rejects with its reason; `onTrouble` is
 *   called before each pause, and before giving up
 * @returns {Promise<T>} @throws {unknown} the last error, once trying again is no use
 */
export async function retrying(attempt, { signal, isWorthIt = canRetry, onTrouble } = {}) {
  let backoff = new Backoff();
  for (;;) {
    let began_at = performance.now();
    try {
      return await attempt(() => {
        backoff = new Backoff();
        began_at = performance.now();
      });
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof Error) onTrouble?.(error);
      if (!(error instanceof Error) || final.has(error) || !isWorthIt(error)) throw error;
      const asked_ms = error instanceof Refused ? error.retryAfter_s * 1000 : 0;
      const tried_ms = Math.min(performance.now() - began_at, ATTEMPT_COST_MS);
      const cost_ms = isLasting(error) ? LASTING_COST_MS : tried_ms;
      const pause_ms = backoff.pause_ms({ asked_ms, cost_ms });
      if (pause_ms === null) {
        final.add(error);
        throw error;
      }
      await sleep(pause_ms, signal);
    }
  }
}

/**
 * @param {number} pause_ms @param {AbortSignal} [signal] rejects with its reason
 * @returns {Promise<void>}
 */
function sleep(pause_ms, signal) {
  return new Promise((resolve, reject) => {
    setTimeout(resolve, pause_ms);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** @type {Record<Exclude<FailureCode, "">, [string, string]>} */
const TRANSFER_TROUBLES = {
  file_unreadable: [
    "The file can’t be read any more",
    "It was moved, changed or removed after you chose it, or its drive was disconnected. Reconnect it and try again, or choose the file again. Uploaded parts are kept.",
  ],
  etag_hidden: [
    "The file storage isn’t set up for uploads in parts",
    "Its CORS rules must expose the ETag header. Tell the person who runs this portal.",
  ],
  incomplete: ["The upload is incomplete", "Storage didn’t receive the whole file. Try again."],
};

/** @param {Error | null} error @returns {[title: string, text: string]} */
export function transferTrouble(error) {
  if (error instanceof NotPublished) return ["Upload this file again", error.words];
  if (isSignedOut(error)) {
    return ["The upload has stopped", `${SIGNED_OUT} Uploaded parts are kept.`];
  }
  if (error instanceof SomeoneElse) return ["The upload has stopped", SOMEONE_ELSE];
  const quota = quotaTrouble(error);
  if (quota) return quota;
  if (error instanceof Refused) {
    const title = isPassing(error.status)
      ? "The portal is busy"
      : "The portal can’t accept this file";
    const reasons = error.faults.map((fault) => fault.message).join(" ");
    return [title, reasons || error.detail || "Try again in a moment."];
  }
  if (error instanceof NoAnswer) {
    const text = "Check your connection, then try again. Nothing you typed is lost.";
    return ["The portal can’t be reached", text];
  }
  if (error instanceof TransferFailed && error.code) return TRANSFER_TROUBLES[error.code];
  if (error instanceof TransferFailed && error.status) {
    const text = `It may be busy, or its upload link expired (status ${error.status}). Try again to get a new link.`;
    return ["The file storage refused the upload", text];
  }
  return ["The upload was interrupted", "Check your connection to storage, then try again."];
}

/**
 * Return title and remedy of a refusal by a quota.
 * @param {unknown} error @returns {[title: string, text: string] | null} null for another error
 */
export function quotaTrouble(error) {
  if (!(error instanceof Refused)) return null;
  const { code, detail, freeAt } = error;
  if (code === "storage_quota_exceeded") return ["Not enough storage for this file", detail];
  if (code !== "video_quota_exceeded") return null;
  // Shown in the reader's time zone; the portal's text is in UTC.
  const when = freeAt ? formatWhen(Date.parse(freeAt)) : "later";
  const text = `Your account has reached its limit of videos per 24 hours. You can publish the next one ${when}; your upload is kept until then. To raise the limit, ask an owner of this portal.`;
  return ["You’ve reached your publishing limit", text];
}

/** @param {Error | null} error whether the portal may take the same file another time */
export function canTryAgain(error) {
  if (!(error instanceof Refused) || isPassing(error.status)) return true;
  return needsSignIn(error) || quotaTrouble(error) !== null;
}
