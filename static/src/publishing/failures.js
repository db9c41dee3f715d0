/**
 * Failures of an upload: whether they are retried and at what cost, their titles and their
 * remedies.
 */

import { formatWhen } from "../format.js";
import { gettext } from "../messages.js";
import { needsSignIn } from "../people/session.js";
import { ACCOUNT_CHANGED, AccountChanged } from "../people/sign-in-again.js";
import {
  canRetry,
  isSignedOut,
  isTemporary,
  NoResponse,
  Refused,
  SIGNED_OUT,
} from "../requests.js";

/** Cost of a permanent refusal, so that the third in a row is the last. */
const PERMANENT_COST_MS = 50_000;
/** Refusals that show that this page's state of the upload is outdated. */
const STALE_CODES = ["upload_not_started", "upload_not_issued", "upload_gone", "parts_missing"];
/** Messages of refusals that last until the person signs in. */
export const SIGN_IN_MESSAGES = new Set([SIGNED_OUT, ACCOUNT_CHANGED]);

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

/** The content can't be produced. The title and the message, which has a remedy, are for people. */
export class ContentFailed extends Error {
  /** @param {string} title @param {string} message */
  constructor(title, message) {
    super(message);
    this.title = title;
  }
}

/** The portal refused to publish. */
export class NotPublished extends Error {
  /**
   * @param {import("../requests.js").FieldFault[]} faults of the form's fields
   * @param {string} message of the whole form
   * @param {boolean} needsUpload whether the file has to be uploaded again
   */
  constructor(faults, message, needsUpload) {
    super(message);
    this.faults = faults;
    this.needsUpload = needsUpload;
  }
}

/** Return whether the request failed without a response. @param {unknown} error */
export function isDisconnected(error) {
  if (error instanceof NoResponse) return true;
  return error instanceof TransferFailed && error.status === 0 && error.code === "";
}

/** Return whether the upload's state has to be read again. @param {unknown} error */
export function isStale(error) {
  if (error instanceof Refused) return STALE_CODES.includes(error.code);
  return error instanceof TransferFailed && error.status === 404;
}

/** Return whether another attempt may succeed. @param {unknown} error */
export function canRetryTransfer(error) {
  if (canRetry(error) || isStale(error)) return true;
  // A new signature replaces an expired one, and S3 responds to some broken connections with 400.
  return error instanceof TransferFailed && error.code === "";
}

/**
 * Return whether the same request would fail again, except for an expired signature.
 * @param {unknown} error
 */
function isPermanent(error) {
  if (!(error instanceof TransferFailed) || error.status === 0 || isStale(error)) return false;
  return !isTemporary(error.status);
}

/** Options of `retry` for transfers. @type {import("../retry.js").RetryOptions} */
export const TRANSFER = {
  shouldRetry: canRetryTransfer,
  leastCostOf_ms: (error) => (isPermanent(error) ? PERMANENT_COST_MS : 0),
};

/** @type {Record<Exclude<FailureCode, "">, [string, string]>} */
const TRANSFER_ERRORS = {
  file_unreadable: [
    gettext("The file can’t be read any more"),
    gettext(
      "It was moved, changed or removed after you chose it, or its drive was disconnected. Reconnect it and try again, or choose the file again. Uploaded parts are kept.",
    ),
  ],
  etag_hidden: [
    gettext("The file storage isn’t set up for uploads in parts"),
    gettext("Its CORS rules must expose the ETag header. Tell the person who runs this portal."),
  ],
  incomplete: [
    gettext("The upload is incomplete"),
    gettext("Storage didn’t receive the whole file. Try again."),
  ],
};

/**
 * Return title and remedy of a failed upload.
 * @param {Error | null} error @returns {[title: string, text: string]}
 */
export function describeTransferError(error) {
  if (error instanceof NotPublished) return [gettext("Upload this file again"), error.message];
  if (error instanceof ContentFailed) return [error.title, error.message];
  if (isSignedOut(error)) {
    const isKept = gettext("Uploaded parts are kept.");
    return [gettext("The upload has stopped"), `${SIGNED_OUT} ${isKept}`];
  }
  if (error instanceof AccountChanged) return [gettext("The upload has stopped"), ACCOUNT_CHANGED];
  const quota = describeQuotaError(error);
  if (quota) return quota;
  if (error instanceof Refused) {
    const title = isTemporary(error.status)
      ? gettext("The portal is busy")
      : gettext("The portal can’t accept this file");
    const reasons = error.faults.map((fault) => fault.message).join(" ");
    return [title, reasons || error.detail || gettext("Try again in a moment.")];
  }
  if (error instanceof NoResponse) {
    const text = gettext("Check your connection, then try again. Nothing you typed is lost.");
    return [gettext("The portal can’t be reached"), text];
  }
  if (error instanceof TransferFailed && error.code) return TRANSFER_ERRORS[error.code];
  if (error instanceof TransferFailed && error.status) {
    const text = gettext(
      "It may be busy, or its upload link expired (status %(status)s). Try again to get a new link.",
      { status: error.status },
    );
    return [gettext("The file storage refused the upload"), text];
  }
  const text = gettext("Check your connection to storage, then try again.");
  return [gettext("The upload was interrupted"), text];
}

/**
 * Return title and remedy of a refusal by a quota.
 * @param {unknown} error @returns {[title: string, text: string] | null} null for another error
 */
export function describeQuotaError(error) {
  if (!(error instanceof Refused)) return null;
  const { code, detail, freeAt } = error;
  if (code === "storage_quota_exceeded") {
    return [gettext("Not enough storage for this file"), detail];
  }
  if (code !== "video_quota_exceeded") return null;
  return [gettext("You’ve reached your publishing limit"), publishingLimitText(freeAt)];
}

/**
 * Return the text about the limit of videos. Its time is in the reader's time zone; that in the
 * portal's text is in UTC.
 * @param {string} [freeAt] when the next video can be published, in ISO 8601
 */
function publishingLimitText(freeAt) {
  if (!freeAt) {
    return gettext(
      "Your account has reached its limit of videos per 24 hours. You can publish the next one later; your upload is kept until then. To raise the limit, ask an owner of this portal.",
    );
  }
  const { isToday, date, time } = formatWhen(Date.parse(freeAt));
  return isToday
    ? gettext(
        "Your account has reached its limit of videos per 24 hours. You can publish the next one today at %(time)s; your upload is kept until then. To raise the limit, ask an owner of this portal.",
        { time },
      )
    : gettext(
        "Your account has reached its limit of videos per 24 hours. You can publish the next one on %(date)s at %(time)s; your upload is kept until then. To raise the limit, ask an owner of this portal.",
        { date, time },
      );
}

/** Return whether the portal may accept the same file another time. @param {Error | null} error */
export function canTryAgain(error) {
  if (!(error instanceof Refused) || isTemporary(error.status)) return true;
  return needsSignIn(error) || describeQuotaError(error) !== null;
}
