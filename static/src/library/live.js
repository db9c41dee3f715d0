/** Tells people who cannot see the page what has changed on it. */

/** @param {string} words */
export function say(words) {
  const region = document.querySelector("[data-library-live]");
  if (region) region.textContent = words;
}

/** The poll brought a card to its end. @type {import("../lifecycle.js").Behaviour} */
export const newsBehaviour = {
  selector: "#library-poll[data-news]",
  start(element) {
    say(element.dataset.news ?? "");
  },
};
