/**
 * The overview of the keys, with the switch for those that are single characters. The switch is
 * where it is known whether they are on: it works where nothing can be saved, too.
 */
import { closeByBackdrop } from "../backdrop.js";
import { saveSettings, settings } from "./local-storage.js";

/**
 * @param {HTMLElement} box
 * @param {HTMLElement} controller
 * @param {AbortSignal} signal
 */
export function keysDialog(box, controller, signal) {
  const dialog = /** @type {HTMLDialogElement} */ (box.querySelector("[data-player-keys]"));
  const letters = /** @type {HTMLInputElement} */ (dialog.querySelector("input"));
  letters.checked = settings().hasLetterKeys ?? true;
  letters.addEventListener("change", () => saveSettings({ hasLetterKeys: letters.checked }), {
    signal,
  });
  closeByBackdrop(dialog, signal);
  // The switch is at its end, and a small screen would begin there. In the markup, browsers would
  // complain of it in frames of other sites.
  dialog.autofocus = true;
  const show = () => dialog.showModal();
  openFromMenu(controller, show, signal);
  return { show, hasLetterKeys: () => letters.checked };
}

/**
 * @param {HTMLElement} controller
 * @param {() => void} show
 * @param {AbortSignal} signal
 */
function openFromMenu(controller, show, signal) {
  const menu = /** @type {HTMLElement} */ (controller.querySelector(".player__menu"));
  const entry = menu.querySelector("[data-opens-keys]");
  /** @type {HTMLElement | null} */
  const button = controller.querySelector("media-settings-menu-button");
  const open = () => {
    // What has the focus gets it back when the dialog is closed, so it must be there then.
    button?.focus();
    menu.hidden = true;
    show();
  };
  entry?.addEventListener("click", open, { signal });
  entry?.addEventListener(
    "keyup",
    (event) => {
      if (event instanceof KeyboardEvent && [" ", "Enter"].includes(event.key)) open();
    },
    { signal },
  );
}
