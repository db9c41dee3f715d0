/**
 * Follows what is still being made of a ready video: says that a quality was added, so that what
 * lists them is fetched again, and that there are pictures for the time bar. The player is left as
 * it is.
 */

/** @type {string | null} */
let lastCount = null;

/** @type {import("./lifecycle.js").Behaviour} */
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
