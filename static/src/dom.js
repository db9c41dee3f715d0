/** Small helpers for elements and events. */

/**
 * Return an element that the template must contain.
 * @param {ParentNode} root @param {string} selector @returns {HTMLElement}
 */
export function element(root, selector) {
  const match = root.querySelector(selector);
  if (!(match instanceof HTMLElement)) throw new Error(`the page has no ${selector}`);
  return match;
}

/**
 * Set the text of an element, unless that is its text already.
 * @param {ParentNode} root @param {string} selector @param {string} text
 */
export function setText(root, selector, text) {
  const target = element(root, selector);
  if (target.textContent !== text) target.textContent = text;
}

/**
 * Set the texts of several elements, by the names of their data attributes.
 * @param {ParentNode} root @param {Record<string, string>} texts
 */
export function setTexts(root, texts) {
  for (const [name, text] of Object.entries(texts)) setText(root, `[data-${name}]`, text);
}

/**
 * Return the closest matching element of an event's target.
 * @param {EventTarget | null} target @param {string} selector @returns {HTMLElement | null}
 */
export function closest(target, selector) {
  const match = target instanceof Element ? target.closest(selector) : null;
  return match instanceof HTMLElement ? match : null;
}

/**
 * Let a focused input send the `change` event of its typed text, and keep the focus.
 * @param {HTMLElement} field
 */
export function endTyping(field) {
  field.blur();
  if (document.activeElement === document.body) field.focus();
}

/**
 * Return whether a click opens a new tab or window, which the browser handles.
 * @param {MouseEvent} event
 */
export function opensNewTab({ ctrlKey, metaKey, shiftKey }) {
  return ctrlKey || metaKey || shiftKey;
}

/**
 * Let the browser ask before people leave the page with unsaved work.
 * @param {() => boolean} hasUnsavedWork @param {AbortSignal} signal
 */
export function confirmLeaving(hasUnsavedWork, signal) {
  const handleLeaving = (/** @type {Event} */ event) => {
    if (hasUnsavedWork()) event.preventDefault();
  };
  window.addEventListener("beforeunload", handleLeaving, { signal });
}

/**
 * Return the request context in an event of htmx, which has no types for it.
 * @param {Event} event @returns {any}
 */
export function contextOf(event) {
  return /** @type {CustomEvent} */ (event).detail.ctx;
}

/** Time during which announcements are collected, to be read together. */
const GATHER_MS = 300;
const LIVE = "[data-detail-live], [data-library-live], [data-upload-live]";
/** @type {Set<string>} */
const pendingTexts = new Set();

/** Announce a text politely to assistive technology. @param {string} text */
export function announce(text) {
  const region = document.querySelector(LIVE);
  const isScheduled = pendingTexts.size > 0;
  if (region) pendingTexts.add(text);
  if (!region || isScheduled) return;
  // Emptied first, because assistive technology ignores an unchanged text.
  region.textContent = "";
  setTimeout(() => {
    region.textContent = [...pendingTexts].join(" ");
    pendingTexts.clear();
  }, GATHER_MS);
}
