/** What went wrong, in words that say what to do. */

import { NoAnswer, Refused } from "../api.js";
import { TransferFailed } from "./transfer.js";

/**
 * @param {unknown} error from Upload.send
 * @returns {import("./panel.js").Trouble}
 */
export function uploadTrouble(error) {
  if (error instanceof Refused) return refusedUpload(error);
  if (error instanceof NoAnswer) {
    return {
      title: "The portal can’t be reached",
      text: "Check your connection, then try again. Nothing you typed is lost.",
      canRetry: true,
    };
  }
  if (error instanceof TransferFailed && error.status === 0) {
    return {
      title: "The upload was interrupted",
      text: "The connection to the file storage was lost. Check your connection, then try again.",
      canRetry: true,
    };
  }
  const status = error instanceof TransferFailed ? ` (status ${error.status})` : "";
  return {
    title: "The file storage refused the upload",
    text: `It may be busy, or its upload link expired${status}. Try again with a new link.`,
    canRetry: true,
  };
}

/** @param {Refused} error */
function refusedUpload(error) {
  const reasons = error.faults.map((fault) => fault.message).join(" ");
  return {
    title:
      error.status >= 500 ? "The portal is busy at the moment" : "The portal can’t take this file",
    text: reasons || error.detail || "Try again in a moment.",
    canRetry: error.status >= 500 || error.status === 429,
  };
}

/**
 * @param {unknown} error from the request that publishes
 * @returns {string}
 */
export function publishTrouble(error) {
  if (error instanceof Refused) {
    return error.detail || `The portal answered with status ${error.status}. Try again.`;
  }
  return "The portal can’t be reached. Check your connection and publish again; your upload is safe.";
}
