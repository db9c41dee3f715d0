/**
 * Closes a dialog when its backdrop is pressed.
 * @param {HTMLDialogElement} dialog
 * @param {AbortSignal} signal
 */
export function closeByBackdrop(dialog, signal) {
  // Outside of its content, which covers it, there's only the backdrop.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close(), {
    signal,
  });
}
