/**
 * Shows times and sizes as the reader's own language and zone have them. Without scripts the
 * server's words stay: UTC, and English figures.
 */

import { formatSize } from "./format.js";

const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const language = format.resolvedOptions().locale;

/** @type {import("./lifecycle.js").Behaviour} */
export const localTime = {
  selector: "time[data-local]",
  start(element) {
    const moment = new Date(element.getAttribute("datetime") ?? "");
    if (Number.isNaN(moment.getTime())) return;
    element.title = element.textContent?.trim() ?? "";
    show(element, format.format(moment));
  },
};

/** @type {import("./lifecycle.js").Behaviour} */
export const localSize = {
  selector: "data[data-local]",
  start(element) {
    if (element instanceof HTMLDataElement) show(element, formatSize(Number(element.value)));
  },
};

/**
 * @param {HTMLElement} element
 * @param {string} words
 */
function show(element, words) {
  element.textContent = words;
  // So that they are read out in the language they are written in.
  element.lang = language;
}
