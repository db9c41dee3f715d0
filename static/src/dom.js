/** Small helpers for elements, events and signals. */

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

/** @param {HTMLDialogElement} dialog @param {AbortSignal} signal */
export function closeByBackdrop(dialog, signal) {
  // Outside of its content, which covers it, there's only the backdrop.
  const close = (/** @type {Event} */ { target }) => target === dialog && dialog.close();
  dialog.addEventListener("click", close, { signal });
}

/** Whether a new tab or window was asked for, which is the page's job. @param {MouseEvent} event */
export function opensElsewhere({ ctrlKey, metaKey, shiftKey }) {
  return ctrlKey || metaKey || shiftKey;
}

/** Tells assistive technology, politely, what has just happened. @param {string} words */
export function announce(words) {
  const region = document.querySelector("[data-detail-live], [data-library-live]");
  if (!region) return;
  // The same words twice are news the second time, too.
  region.textContent = "";
  requestAnimationFrame(() => {
    region.textContent = words;
  });
}

/**
 * `AbortSignal.any`, which is younger than the oldest browsers that are built for.
 * @param {AbortSignal[]} signals
 * @returns {AbortSignal} aborts as soon as one of them does, with its reason
 */
export function anySignal(signals) {
  const any = new AbortController();
  for (const signal of signals) {
    const stop = () => any.abort(signal.reason);
    if (signal.aborted) stop();
    // The first to abort ends the listening to all.
    else signal.addEventListener("abort", stop, { signal: any.signal });
  }
  return any.signal;
}
