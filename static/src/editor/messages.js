/** Messages of editors, and the element that shows them: <p data-message>. */

import { announce, element, setText } from "../dom.js";
import { gettext } from "../messages.js";
import { needsSignIn } from "../people/session.js";
import { NoResponse, Refused, SIGNED_OUT } from "../requests.js";

/**
 * Message of an editor; `tone` is the name of a colour of the style sheet.
 * @typedef {{ text: string, tone?: "good" | "bad" | "busy" }} Message
 */

/** @type {Message} */
export const NONE = { text: "" };
/** @type {Message} */
export const SAVED = { text: gettext("Saved."), tone: "good" };
const NO_RESPONSE = gettext(
  "The portal can’t be reached. Check your connection, then try again. Your changes are kept.",
);

/** Show and announce a message; without a text, remove the last one. @param {HTMLElement} root @param {Message} message */
export function show(root, { text, tone }) {
  setText(root, "[data-message]", text);
  element(root, "[data-message]").dataset.message = tone ?? "";
  if (text) announce(text);
}

/** Return the message about a failed save. @param {unknown} error @returns {Message} */
export function ofFailure(error) {
  return { text: textOf(error), tone: "bad" };
}

/** @param {unknown} error */
function textOf(error) {
  if (needsSignIn(error)) return SIGNED_OUT;
  if (error instanceof NoResponse) return NO_RESPONSE;
  if (!(error instanceof Refused)) throw error;
  // A proxy answers without a problem document.
  const fallback = gettext(
    "The portal responded with status %(status)s. Try again. Your changes are kept.",
    { status: error.status },
  );
  return error.faults[0]?.message || error.detail || fallback;
}
