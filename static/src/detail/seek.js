/** Times in a description: <a href="?t=65" data-seek="65">, which the player on the page goes to. */

import { player } from "./player-of-page.js";

/**
 * @param {HTMLElement} text
 * @param {AbortSignal} signal
 */
export function seekLinks(text, signal) {
  text.addEventListener("click", seek, { signal });
}

/** @param {MouseEvent} event */
function seek(event) {
  const link = event.target instanceof Element && event.target.closest("[data-seek]");
  const video = player();
  if (!(link instanceof HTMLElement) || !video) return;
  // A new tab or window was asked for.
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  video.currentTime = Number(link.dataset.seek);
  video.scrollIntoView({ block: "nearest" });
  // Browsers may want a click on the player itself first.
  video.play().catch(() => {});
}
