/** Messages about the cuts. */

import { gettext } from "../messages.js";

/** @typedef {import("../editor/messages.js").Message} Message */

/** @type {Message} */
export const SAVING = { text: gettext("Saving…") };
/** @type {Message} */
export const CONFLICT = {
  text: gettext(
    "Someone else has changed the cuts. Yours are shown, and Undo shows theirs. Save again to replace theirs.",
  ),
  tone: "busy",
};
export const DRAFT = {
  text: gettext("Your cuts are kept in this browser. Viewers get them once you save."),
};
/** @type {Message} */
export const DROPPED = {
  text: gettext(
    "The cuts that this browser kept were of another file of this video, so they were dropped.",
  ),
  tone: "busy",
};
/** @type {Message} */
export const NO_SENTENCES = { text: gettext("Select sentences first."), tone: "bad" };
export const LOADING = gettext("The cuts can’t be loaded. Trying again…");
/** @type {Message} */
export const NOT_LOADED = {
  text: gettext("The cuts can’t be loaded. Reload the page to try again."),
  tone: "bad",
};
export const REPLACED = gettext(
  "The file of this video was replaced. Reload the page to cut the new one.",
);
