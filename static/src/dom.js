/** Small helpers for elements and events. */

/**
 * The element that the template is known to have.
 * @param {ParentNode} root @param {string} selector @returns {HTMLElement}
 */
export function element(root, selector) {
  const found = root.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`the page has no ${selector}`);
  return found;
}

/** @param {ParentNode} root @param {string} selector @param {string} words */
export function setText(root, selector, words) {
  const place = element(root, selector);
  if (place.textContent !== words) place.textContent = words;
}

/** @param {ParentNode} root @param {Record<string, string>} texts by the names of data attributes */
export function setTexts(root, texts) {
  for (const [name, words] of Object.entries(texts)) setText(root, `[data-${name}]`, words);
}

/** Whether a new tab or window was asked for, which is the page's job. @param {MouseEvent} event */
export function opensElsewhere({ ctrlKey, metaKey, shiftKey }) {
  return ctrlKey || metaKey || shiftKey;
}

/** What htmx tells of a request; it has no types for that. @param {Event} event @returns {any} */
export function contextOf(event) {
  return /** @type {CustomEvent} */ (event).detail.ctx;
}

/** What is said to screen readers within this time is said at once. */
const GATHER_MS = 300;
const LIVE = "[data-detail-live], [data-library-live], [data-upload-live]";
/** @type {Set<string>} */
const unsaid = new Set();

/** Tells assistive technology, politely, what has just happened. @param {string} words */
export function announce(words) {
  const region = document.querySelector(LIVE);
  const isWaiting = unsaid.size > 0;
  if (region) unsaid.add(words);
  if (!region || isWaiting) return;
  // The same words twice are news the second time, too.
  region.textContent = "";
  setTimeout(() => {
    region.textContent = [...unsaid].join(" ");
    unsaid.clear();
  }, GATHER_MS);
}
