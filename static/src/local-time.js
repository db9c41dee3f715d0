/** Shows <time data-local> in the reader's own zone and language; the UTC text stays without JS. */

const format = new Intl.DateTimeFormat(document.documentElement.lang || undefined, {
  dateStyle: "medium",
  timeStyle: "short",
});

/** @type {import("./lifecycle.js").Behaviour} */
export const localTime = {
  selector: "time[data-local]",
  start(element) {
    const moment = new Date(element.getAttribute("datetime") ?? "");
    if (Number.isNaN(moment.getTime())) return;
    element.title = element.textContent?.trim() ?? "";
    element.textContent = format.format(moment);
  },
};
