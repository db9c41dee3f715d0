/**
 * Tells assistive technology how processing goes. The fragment is replaced every second, which as
 * a live region would never fall silent, so the words go to a separate region: a new stage at once,
 * progress only at each quarter.
 */

/** @type {import("./lifecycle.js").Behaviour} */
export const announceStatus = {
  selector: "[data-status]",
  start(element) {
    const region = document.querySelector("[data-status-live]");
    if (!region) return;
    const words = element.dataset.announce ?? "";
    const quarter = Math.floor(Number(element.dataset.percent ?? 0) / 25) * 25;
    const message = quarter > 0 && quarter < 100 ? `${words} ${quarter} %` : words;
    // The first text is on the page already; only changes are news.
    const isNews = region.getAttribute("data-said") !== null;
    if (region.getAttribute("data-said") === message) return;
    region.setAttribute("data-said", message);
    if (isNews) region.textContent = message;
  },
};
