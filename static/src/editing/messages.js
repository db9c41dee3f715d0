/** Messages of editors whose save failed. */

import { needsSignIn } from "../accounts/session.js";
import { NoResponse, Refused, SIGNED_OUT } from "../requests.js";

const NO_RESPONSE =
  "The portal can’t be reached. Check your connection, then try again. Your changes are kept.";

/** Return the message for a failed save. @param {unknown} error */
export function saveErrorMessage(error) {
  if (needsSignIn(error)) return SIGNED_OUT;
  if (error instanceof NoResponse) return NO_RESPONSE;
  if (!(error instanceof Refused)) throw error;
  // A proxy answers without a problem document.
  const fallback = `The portal responded with status ${error.status}. Try again. Your changes are kept.`;
  return error.faults[0]?.message || error.detail || fallback;
}
