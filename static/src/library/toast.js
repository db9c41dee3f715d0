/** What has come of an action goes once there is nothing more to be done about it. */

/**
 * @param {HTMLElement} element
 * @param {AbortSignal} signal
 */
export function toast(element, signal) {
  const timeout_s = Number(element.dataset.toast);
  const timer = setTimeout(() => {
    // Whose focus it has goes on from the page's content.
    if (element.contains(document.activeElement)) document.getElementById("main")?.focus();
    element.remove();
  }, timeout_s * 1000);
  signal.addEventListener("abort", () => clearTimeout(timer));
}
