/** Tells assistive technology, politely, what has just happened on the page. */

/** @param {string} words */
export function announce(words) {
  const region = document.querySelector("[data-detail-live], [data-library-live]");
  if (!region) return;
  // The same words twice are news the second time, too.
  region.textContent = "";
  requestAnimationFrame(() => {
    region.textContent = words;
  });
}
