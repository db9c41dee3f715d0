/**
 * Status of a video on an open page: an event at the end of processing, and announcements of the
 * progress. The fragment is replaced every other second, so as a live region it would be read
 * without a pause; the page's own region announces a new stage at once, and progress at each
 * quarter.
 */

import { announce } from "./dom.js";
import { formatPercent } from "./format.js";
import { gettext } from "./messages.js";

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
    animateProgress(element);
    announceProgress(element);
  },
};

/**
 * Start the new progress bar at the position of the replaced one, so that it moves smoothly.
 * @param {HTMLElement} element
 */
function animateProgress(element) {
  const bar = element.querySelector("progress");
  if (!bar?.hasAttribute("value")) return;
  const { value } = bar;
  bar.value = Math.min(lastValue, value);
  // Reading the layout makes the browser animate from the old value.
  bar.getBoundingClientRect();
  bar.value = value;
  lastValue = value;
}

/** @param {HTMLElement} element */
function announceProgress({ dataset }) {
  const quarter = Math.floor(Number(dataset.percent ?? 0) / 25) * 25;
  const stage = dataset.announce ?? "";
  const percent = formatPercent(quarter / 100);
  const message =
    quarter > 0 && quarter < 100
      ? // Translators: progress of a stage of the processing, such as "Processing 25%".
        gettext("%(stage)s %(percent)s", { stage, percent })
      : stage;
  // The first text is already on the page; only changes are announced.
  if (lastMessage !== null && lastMessage !== message) announce(message);
  lastMessage = message;
}

/** @type {string | null} */
let lastCount = null;

/**
 * Remaining renditions of a playing video: sends events for an added quality and for the
 * storyboard, because the player is not replaced.
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
 * Button that retries the processing. The response removes the button, so the focus moves to the
 * page's content.
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
