/** The video that plays on this page. */

/** @returns {HTMLVideoElement | null} */
export function player() {
  const found = document.querySelector("video[data-player]");
  return found instanceof HTMLVideoElement ? found : null;
}
