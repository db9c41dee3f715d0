/** Messages about the cuts, and the element that shows them. */

import { announce, element, setText } from "../dom.js";
import { saveErrorMessage } from "../editing/messages.js";

/**
 * Message about the cuts; `tone` is the name of a colour of the style sheet.
 * @typedef {{ text: string, tone?: "good" | "bad" | "busy" }} Message
 */

/** @type {Message} */
export const NONE = { text: "" };
/** @type {Message} */
export const SAVED = { text: "Saved.", tone: "good" };
/** @type {Message} */
export const CONFLICT = {
  text: "Someone else has changed the cuts. Yours are shown, and Undo shows theirs. Save again to replace theirs.",
  tone: "busy",
};
export const DRAFT = {
  text: "Your cuts are kept in this browser. Viewers get them once you save.",
};
/** @type {Message} */
export const DROPPED = {
  text: "The cuts that this browser kept were of another file of this video, so they were dropped.",
  tone: "busy",
};
/** @type {Message} */
export const NO_SENTENCES = { text: "Select sentences first.", tone: "bad" };
export const LOADING = "The cuts can’t be loaded. Trying again…";
/** @type {Message} */
export const NOT_LOADED = {
  text: "The cuts can’t be loaded. Reload the page to try again.",
  tone: "bad",
};
export const REPLACED = "The file of this video was replaced. Reload the page to cut the new one.";

/** Show and announce a message; without a text, remove the last one. @param {HTMLElement} root @param {Message} message */
export function show(root, { text, tone }) {
  setText(root, "[data-message]", text);
  element(root, "[data-message]").dataset.message = tone ?? "";
  if (text) announce(text);
}

/** Return the message about a failed save. @param {unknown} error @returns {Message} */
export function ofFailure(error) {
  return { text: saveErrorMessage(error), tone: "bad" };
}
