/** Tells assistive technology, politely, what has just happened on the page of a video. */

/** @param {string} words */
export function announce(words) {
  const region = document.querySelector("[data-detail-live]");
  if (!region) return;
  // The same words twice are news the second time, too.
  region.textContent = "";
  requestAnimationFrame(() => {
    region.textContent = words;
  });
}
