/**
 * Follows a video's status while the page is open: says that processing has ended, which other
 * fragments wait for, and tells assistive technology how it goes. The fragment is replaced every
 * other second, which as a live region would never fall silent, so the words go to the page's own
 * region: a new stage at once, progress only at each quarter.
 */

import { announce } from "./dom.js";

let wasProcessing = false;
let lastValue = 0;
/** @type {string | null} */
let lastMessage = null;

/** @type {import("./lifecycle.js").Behaviour} */
export const statusBehaviour = {
  selector: "[data-status]",
  start(element) {
    const { status } = element.dataset;
    const isFinal = status === "ready" || status === "failed";
    if (isFinal && wasProcessing) document.body.dispatchEvent(new Event("video-final"));
    wasProcessing = status === "processing";
    glide(element);
    tell(element);
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
function tell({ dataset }) {
  const quarter = Math.floor(Number(dataset.percent ?? 0) / 25) * 25;
  const words = dataset.announce ?? "";
  const message = quarter > 0 && quarter < 100 ? `${words} ${quarter}%` : words;
  // The first text is on the page already; only changes are news.
  if (lastMessage !== null && lastMessage !== message) announce(message);
  lastMessage = message;
}

/** @type {string | null} */
let lastCount = null;

/**
 * Follows what is still being made of a video that plays: says that a quality was added, so that
 * what lists them is fetched again, and that there are pictures for the time bar. The player is left as
 * it is.
 * @type {import("./lifecycle.js").Behaviour}
 */
export const remainingBehaviour = {
  selector: "[data-remaining]",
  start(element) {
    const count = element.dataset.remaining ?? "";
    if (lastCount !== null && count !== lastCount) {
      const detail = element.dataset.source;
      document.body.dispatchEvent(new CustomEvent("quality-added", { detail }));
    }
    lastCount = count;
    const { storyboardMade } = element.dataset;
    if (storyboardMade) {
      document.body.dispatchEvent(new CustomEvent("storyboard-made", { detail: storyboardMade }));
    }
  },
};

/**
 * Asking for another try: the answer takes the button away, and the focus with it. It goes on from
 * the beginning of the page's content, which stays; what replaced the button is replaced itself
 * every other second.
 * @type {import("./lifecycle.js").Behaviour}
 */
export const retryBehaviour = {
  selector: "[data-retry]",
  start(_form, signal) {
    signal.addEventListener("abort", () => {
      const isLost = document.activeElement === document.body;
      if (isLost) document.getElementById("main")?.focus({ preventScroll: true });
    });
  },
};
