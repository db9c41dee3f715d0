/** Times in the page's language and the reader's time zone. Without scripts, pages show UTC. */

import { formatAgo } from "./format.js";
import { language } from "./messages.js";

// Readers may write the dates of the page's language in the way of their own country.
export const locale = navigator.languages.find((tag) => tag.split("-")[0] === language) ?? language;
const format = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const REFRESH_MS = 60_000;

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
      element.textContent = format.format(moment);
      return;
    }
    const update = () => {
      element.textContent = formatAgo(moment, new Date());
    };
    update();
    const timer = setInterval(update, REFRESH_MS);
    signal.addEventListener("abort", () => clearInterval(timer));
  },
};
