/**
 * Follows a video's status while the page is open: says that processing has ended, which other
 * fragments wait for, and tells assistive technology how it goes. The fragment is replaced every
 * other second, which as a live region would never fall silent, so the words go to a separate
 * region: a new stage at once, progress only at each quarter.
 */

let wasProcessing = false;
let lastValue = 0;

/** @type {import("./lifecycle.js").Behaviour} */
export const statusBehaviour = {
  selector: "[data-status]",
  start(element) {
    const { status } = element.dataset;
    const isFinal = status === "ready" || status === "failed";
    if (isFinal && wasProcessing) document.body.dispatchEvent(new Event("video-final"));
    wasProcessing = status === "processing";
    glide(element);
    announce(element);
  },
};

/**
 * Lets the new bar start where the one it replaced was, so that it moves on instead of jumping.
 * @param {HTMLElement} element
 */
function glide(element) {
  const bar = element.querySelector("progress");
  if (!bar?.hasAttribute("value")) return;
  const { value } = bar;
  bar.value = Math.min(lastValue, value);
  bar.getBoundingClientRect(); // the browser has to have seen it there
  bar.value = value;
  lastValue = value;
}

/** @param {HTMLElement} element */
function announce(element) {
  const region = document.querySelector("[data-status-live]");
  if (!region) return;
  const words = element.dataset.announce ?? "";
  const quarter = Math.floor(Number(element.dataset.percent ?? 0) / 25) * 25;
  const message = quarter > 0 && quarter < 100 ? `${words} ${quarter}%` : words;
  // The first text is on the page already; only changes are news.
  const isNews = region.getAttribute("data-said") !== null;
  if (region.getAttribute("data-said") === message) return;
  region.setAttribute("data-said", message);
  if (isNews) region.textContent = message;
}
