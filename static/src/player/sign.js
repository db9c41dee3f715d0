/** A brief sign on the picture of what a key or a tap has done. */

const SIGN_MS = 800;

/** @typedef {(words: string) => void} ShowSign */

/**
 * @param {HTMLElement} controller
 * @param {AbortSignal} signal
 * @returns {ShowSign}
 */
export function pictureSign(controller, signal) {
  const sign = /** @type {HTMLElement} */ (controller.querySelector("[data-player-sign]"));
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let hiding;
  const hide = () => {
    clearTimeout(hiding);
    sign.hidden = true;
  };
  signal.addEventListener("abort", hide);
  return (words) => {
    hide();
    sign.textContent = words;
    // A leap is shown at the side that it leads to.
    sign.dataset.playerSign = words.slice(0, 1);
    sign.hidden = false;
    hiding = setTimeout(hide, SIGN_MS);
  };
}

/** @param {number} by_s */
export function leapWords(by_s) {
  return `${by_s < 0 ? "−" : "+"}${Math.abs(by_s)} s`;
}
