/** Unfolds what the address names, in browsers that don't themselves. */

/**
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 */
export function unfoldTarget(root, signal) {
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    let folded = target && root.contains(target) ? target.closest("details:not([open])") : null;
    const wasFolded = folded !== null;
    for (; folded instanceof HTMLDetailsElement; folded = folded.closest("details:not([open])")) {
      folded.open = true;
    }
    if (wasFolded) target?.scrollIntoView();
  };
  addEventListener("hashchange", unfold, { signal });
  unfold();
}
