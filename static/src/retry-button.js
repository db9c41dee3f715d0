/**
 * Asking for another try: the answer takes the button away, and the focus with it. It goes on from
 * the beginning of the page's content, which stays; what replaced the button is replaced itself
 * every other second.
 */

/** @type {import("./lifecycle.js").Behaviour} */
export const retryBehaviour = {
  selector: "[data-retry]",
  start(_form, signal) {
    signal.addEventListener("abort", () => {
      const isLost = document.activeElement === document.body;
      if (isLost) document.getElementById("main")?.focus({ preventScroll: true });
    });
  },
};
