/** What a failed transfer is called, and what to do about it. Pure. */

import { SOMEONE_ELSE, SomeoneElse } from "../accounts/sign-in-again.js";
import { isSignedOut, NoAnswer, needsSignIn, Refused, SIGNED_OUT } from "../requests.js";
import { NotPublished, quotaTrouble } from "./publication.js";
import { TransferFailed } from "./retry.js";

/** @type {Record<Exclude<import("./retry.js").FailureCode, "">, [string, string]>} */
const TRANSFER_TROUBLES = {
  file_unreadable: [
    "The file can’t be read any more",
    "It was moved, changed or removed since you chose it, or its drive is away. Try again once it is back, or choose it again; what has arrived stays.",
  ],
  etag_hidden: [
    "The file storage isn’t set up for uploads in parts",
    "Its CORS rules have to expose the ETag header. Please tell whoever runs this portal.",
  ],
  incomplete: [
    "The file did not arrive whole",
    "The file storage took everything and still doesn’t have it. Try again.",
  ],
};

/** @param {Error | null} error @returns {[title: string, text: string]} */
export function transferTrouble(error) {
  if (error instanceof NotPublished) return ["This file has to be uploaded again", error.words];
  if (isSignedOut(error)) {
    return ["The upload has stopped", `${SIGNED_OUT} What has arrived stays.`];
  }
  if (error instanceof SomeoneElse) return ["The upload has stopped", SOMEONE_ELSE];
  const quota = quotaTrouble(error);
  if (quota) return [quota.title, quota.text];
  if (error instanceof Refused) {
    const title = isBusy(error)
      ? "The portal is busy at the moment"
      : "The portal can’t take this file";
    const reasons = error.faults.map((fault) => fault.message).join(" ");
    return [title, reasons || error.detail || "Try again in a moment."];
  }
  if (error instanceof NoAnswer) {
    const text = "Check your connection, then try again. Nothing you typed is lost.";
    return ["The portal can’t be reached", text];
  }
  if (error instanceof TransferFailed && error.code) return TRANSFER_TROUBLES[error.code];
  if (error instanceof TransferFailed && error.status) {
    const text = `It may be busy, or its upload link expired (status ${error.status}). Try again with a new link.`;
    return ["The file storage refused the upload", text];
  }
  const text =
    "The connection to the file storage was lost. Check your connection, then try again.";
  return ["The upload was interrupted", text];
}

/** @param {Refused} error */
function isBusy({ status }) {
  return status >= 500 || status === 429;
}

/** @param {Error | null} error whether the portal may take the same file another time */
export function canTryAgain(error) {
  if (!(error instanceof Refused) || isBusy(error)) return true;
  return needsSignIn(error) || quotaTrouble(error) !== null;
}
