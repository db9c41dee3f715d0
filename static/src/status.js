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

/** @type {string | null} */
let lastCount = null;

/**
 * Follows what is still being made of a ready video: says that a quality was added, so that what
 * lists them is fetched again, and that there are pictures for the time bar. The player is left as
 * it is.
 * @type {import("./lifecycle.js").Behaviour}
 */
export const remainingBehaviour = {
  selector: "[data-remaining]",
  start(element) {
    const count = element.dataset.remaining ?? "";
    if (lastCount !== null && count !== lastCount) {
      document.body.dispatchEvent(new Event("quality-added"));
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
