/** Times in the reader's language and time zone. Without scripts, pages show UTC. */

import { formatAgo } from "./format.js";

const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const REFRESH_MS = 60_000;
const language = format.resolvedOptions().locale;

/**
 * <time data-local> shows the time, and <time data-local="ago"> the time since; the title has the
 * other of the two.
 * @type {import("./lifecycle.js").Behaviour}
 */
export const localTime = {
  selector: "time[data-local]",
  start(element, signal) {
    const moment = new Date(element.getAttribute("datetime") ?? "");
    if (Number.isNaN(moment.getTime())) return;
    const isAgo = element.dataset.local === "ago";
    element.title = isAgo ? format.format(moment) : (element.textContent?.trim() ?? "");
    if (!isAgo) {
      show(element, format.format(moment));
      return;
    }
    const update = () => show(element, formatAgo(moment, new Date()));
    update();
    const timer = setInterval(update, REFRESH_MS);
    signal.addEventListener("abort", () => clearInterval(timer));
  },
};

/** @param {HTMLElement} element @param {string} text */
function show(element, text) {
  element.textContent = text;
  // Screen readers pronounce the text in this language, which may differ from the page's.
  element.lang = language;
}
