/** Improvements of media-chrome's menus, and the list of keyboard shortcuts that they open. */
import { element } from "../dom.js";
import { saveSettings, settings } from "./saved-state.js";

/** @param {HTMLElement} controller @param {AbortSignal} signal */
export function mendMenus(controller, signal) {
  // A button has no checked state, and other elements have no label.
  element(controller, "media-captions-button").setAttribute("role", "switch");
  element(controller, "media-time-display").setAttribute("role", "timer");
  const menu = element(controller, ".player__menu");
  for (const each of [menu, ...menu.querySelectorAll("[slot=submenu]")]) {
    nameBack(each);
    leaveFocusInside(/** @type {HTMLElement} */ (each));
  }
  closeFromOutside(controller, menu, signal);
}

/** Name the back button by its text, for voice control. @param {Element} menu */
function nameBack(menu) {
  const back = menu.shadowRoot?.querySelector("button[part~=back]");
  back?.setAttribute("role", "menuitem");
  const title = menu.querySelector("[slot=title]")?.textContent;
  if (title) back?.setAttribute("aria-label", `${title}: back`);
}

/**
 * Return the focus when a menu closes. An opening menu takes the focus and returns it to its former
 * element, unless that is an entry that was reached meanwhile.
 * @param {HTMLElement} menu
 */
function leaveFocusInside(menu) {
  const focus = menu.focus.bind(menu);
  menu.focus = () => {
    if (!menu.matches(":focus-within")) focus();
  };
}

/**
 * Close the menu when the page around it is touched, which may not move the focus.
 * @param {HTMLElement} controller @param {HTMLElement} menu @param {AbortSignal} signal
 */
function closeFromOutside(controller, menu, signal) {
  const outside = element(controller, "[data-player-outside]");
  // Without the focus the menu would close before the click, which would reach the video.
  outside.addEventListener("mousedown", (event) => event.preventDefault(), { signal });
  outside.addEventListener("click", () => close(controller, menu), { signal });
  const pressed = (/** @type {KeyboardEvent} */ { key }) => {
    if (key === "Escape" && !menu.hidden) close(controller, menu);
  };
  controller.addEventListener("keydown", pressed, { signal });
  // An entry's list is beside the visible part of the menu.
  menu.addEventListener("toggle", () => menu.scrollTo(0, 0), { signal });
}

/** @param {HTMLElement} controller @param {HTMLElement} menu */
function close(controller, menu) {
  element(controller, "media-settings-menu-button").focus();
  menu.hidden = true;
}

/**
 * Dialog of keyboard shortcuts, with the switch for single characters. The switch holds the
 * setting, so it works without browser storage, too.
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
  // The switch is at the end, where a small screen would start. As an attribute, browsers would
  // report autofocus in frames of other sites.
  dialog.autofocus = true;
  /** @param {Event} event */
  const open = (event) => {
    if (event instanceof KeyboardEvent && ![" ", "Enter"].includes(event.key)) return;
    // The focused element gets the focus back when the dialog closes, so it must stay visible.
    close(controller, menu);
    dialog.showModal();
  };
  for (const name of ["click", "keyup"]) entry.addEventListener(name, open, { signal });
  return { showKeys: () => dialog.showModal(), hasLetterKeys: () => letters.checked };
}
