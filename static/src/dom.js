/** Small helpers for elements and events. */

/**
 * Return an element that the template must contain.
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

/**
 * Return whether a click opens a new tab or window, which the browser handles.
 * @param {MouseEvent} event
 */
export function opensElsewhere({ ctrlKey, metaKey, shiftKey }) {
  return ctrlKey || metaKey || shiftKey;
}

/**
 * Return the request context in an event of htmx, which has no types for it.
 * @param {Event} event @returns {any}
 */
export function contextOf(event) {
  return /** @type {CustomEvent} */ (event).detail.ctx;
}

/** Announcements within this time are read together. */
const GATHER_MS = 300;
const LIVE = "[data-detail-live], [data-library-live], [data-upload-live]";
/** @type {Set<string>} */
const unsaid = new Set();

/** Announce a text politely to assistive technology. @param {string} words */
export function announce(words) {
  const region = document.querySelector(LIVE);
  const isWaiting = unsaid.size > 0;
  if (region) unsaid.add(words);
  if (!region || isWaiting) return;
  // The same text is announced again.
  region.textContent = "";
  setTimeout(() => {
    region.textContent = [...unsaid].join(" ");
    unsaid.clear();
  }, GATHER_MS);
}
