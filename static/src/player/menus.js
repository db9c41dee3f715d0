/** What media-chrome's menus leave to be desired, and the overview of the keys that they open. */
import { element } from "../dom.js";
import { saveSettings, settings } from "./saved-state.js";

/** @param {HTMLElement} controller @param {AbortSignal} signal */
export function mendMenus(controller, signal) {
  // A plain button has no state of being on, and a bare element no label.
  element(controller, "media-captions-button").setAttribute("role", "switch");
  element(controller, "media-time-display").setAttribute("role", "timer");
  const menu = element(controller, ".player__menu");
  for (const each of [menu, ...menu.querySelectorAll("[slot=submenu]")]) {
    nameBack(each);
    leaveFocusInside(/** @type {HTMLElement} */ (each));
  }
  closeFromOutside(controller, menu, signal);
}

/**
 * The button is called by the words on it, as who speaks to the browser would call it.
 * @param {Element} menu
 */
function nameBack(menu) {
  const back = menu.shadowRoot?.querySelector("button[part~=back]");
  back?.setAttribute("role", "menuitem");
  const title = menu.querySelector("[slot=title]")?.textContent;
  if (title) back?.setAttribute("aria-label", `${title}: back`);
}

/**
 * A menu takes the focus once it has unfolded, and gives it back to what had it before. Where that
 * is an entry of its own, reached meanwhile, it would hold on to a focus that is to leave.
 * @param {HTMLElement} menu
 */
function leaveFocusInside(menu) {
  const focus = menu.focus.bind(menu);
  menu.focus = () => {
    if (!menu.matches(":focus-within")) focus();
  };
}

/**
 * Closes the sheet, too, when the page around it is touched, which need not take its focus, and
 * before it has the focus.
 * @param {HTMLElement} controller @param {HTMLElement} menu @param {AbortSignal} signal
 */
function closeFromOutside(controller, menu, signal) {
  const outside = element(controller, "[data-player-outside]");
  // Without the focus the menu would be gone before the click, which would go to the video.
  outside.addEventListener("mousedown", (event) => event.preventDefault(), { signal });
  outside.addEventListener("click", () => close(controller, menu), { signal });
  const pressed = (/** @type {KeyboardEvent} */ { key }) => {
    if (key === "Escape" && !menu.hidden) close(controller, menu);
  };
  controller.addEventListener("keydown", pressed, { signal });
  // An entry's list lies beside what is seen of the sheet unscrolled.
  menu.addEventListener("toggle", () => menu.scrollTo(0, 0), { signal });
}

/** @param {HTMLElement} controller @param {HTMLElement} menu */
function close(controller, menu) {
  element(controller, "media-settings-menu-button").focus();
  menu.hidden = true;
}

/**
 * The overview of the keys, with the switch for those that are single characters. The switch is
 * where it is known whether they are on: it works where nothing can be saved, too.
 * @param {HTMLElement} box @param {HTMLElement} controller @param {AbortSignal} signal
 */
export function keysDialog(box, controller, signal) {
  const dialog = /** @type {HTMLDialogElement} */ (element(box, "[data-player-keys]"));
  const letters = /** @type {HTMLInputElement} */ (element(dialog, "input"));
  const menu = element(controller, ".player__menu");
  const entry = element(menu, "[data-opens-keys]");
  letters.checked = settings().hasLetterKeys ?? true;
  const save = () => saveSettings({ hasLetterKeys: letters.checked });
  letters.addEventListener("change", save, { signal });
  // The switch is at its end, and a small screen would begin there. In the markup, browsers would
  // complain of it in frames of other sites.
  dialog.autofocus = true;
  /** @param {Event} event */
  const open = (event) => {
    if (event instanceof KeyboardEvent && ![" ", "Enter"].includes(event.key)) return;
    // What has the focus gets it back when the dialog is closed, so it must be there then.
    close(controller, menu);
    dialog.showModal();
  };
  for (const name of ["click", "keyup"]) entry.addEventListener(name, open, { signal });
  return { showKeys: () => dialog.showModal(), hasLetterKeys: () => letters.checked };
}
