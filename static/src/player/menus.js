/** Improvements of media-chrome's menus, and the list of keyboard shortcuts that they open. */
import { element } from "../dom.js";
import { gettext } from "../messages.js";
import { saveSettings, settings } from "./saved-state.js";

/**
 * Improve the accessibility and the focus of the menus.
 * @param {HTMLElement} controller @param {AbortSignal} signal
 */
export function improveMenus(controller, signal) {
  // Only a switch has a checked state, and only elements with a role can have a label.
  element(controller, "media-captions-button").setAttribute("role", "switch");
  element(controller, "media-time-display").setAttribute("role", "timer");
  const menu = element(controller, ".player__menu");
  for (const submenu of [menu, ...menu.querySelectorAll("[slot=submenu]")]) {
    labelBackButton(submenu);
    keepFocusInside(/** @type {HTMLElement} */ (submenu));
  }
  closeOnOutsideClick(controller, menu, signal);
  menu.querySelector("[data-player-languages]")?.addEventListener("change", (event) => {
    if (event.target instanceof HTMLElement) chooseLanguage(event.target);
  });
  /** @type {NodeListOf<HTMLElement>} */
  const links = menu.querySelectorAll("[data-visits]");
  for (const entry of links) {
    onChoice(entry, () => window.open(entry.dataset.visits, "_blank", "noopener"), signal);
  }
}

/**
 * Choose the language of the page by its own buttons. A frame has none, and gets another address.
 * @param {HTMLElement & { value?: string }} list
 */
function chooseLanguage({ value = "" }) {
  const button = document.querySelector(`[data-languages] [value="${value}"]`);
  if (button instanceof HTMLElement) {
    button.click();
    return;
  }
  const address = new URL(location.href);
  address.searchParams.set("lang", value);
  location.replace(address);
}

/** Name the back button by its text, for voice control. @param {Element} menu */
function labelBackButton(menu) {
  const back = menu.shadowRoot?.querySelector("button[part~=back]");
  back?.setAttribute("role", "menuitem");
  const title = menu.querySelector("[slot=title]")?.textContent;
  // Translators: button that leaves a menu, such as "Quality: back". It has to begin with the name
  // of the menu, which people say to control it by voice.
  if (title) back?.setAttribute("aria-label", gettext("%(menu)s: back", { menu: title }));
}

/**
 * Keep the focus on the entry of a menu that has it. Without this, an opening menu moves the focus
 * to its own element.
 * @param {HTMLElement} menu
 */
function keepFocusInside(menu) {
  const focus = menu.focus.bind(menu);
  menu.focus = () => {
    if (!menu.matches(":focus-within")) focus();
  };
}

/**
 * Close the menu on a click outside, which may not move the focus on a touch screen.
 * @param {HTMLElement} controller @param {HTMLElement} menu @param {AbortSignal} signal
 */
function closeOnOutsideClick(controller, menu, signal) {
  const outside = element(controller, "[data-player-outside]");
  // Without the focus the menu would close before the click, which would reach the video.
  outside.addEventListener("mousedown", (event) => event.preventDefault(), { signal });
  outside.addEventListener("click", () => closeMenu(controller, menu), { signal });
  const handleKey = (/** @type {KeyboardEvent} */ { key }) => {
    if (key === "Escape" && !menu.hidden) closeMenu(controller, menu);
  };
  controller.addEventListener("keydown", handleKey, { signal });
  // The list of a closed entry stays scrolled into view beside the menu.
  menu.addEventListener("toggle", () => menu.scrollTo(0, 0), { signal });
}

/**
 * Call a function when an entry of the menu is chosen, by pointer or key.
 * @param {HTMLElement} entry @param {() => void} choose @param {AbortSignal} signal
 */
function onChoice(entry, choose, signal) {
  /** @param {Event} event */
  const listener = (event) => {
    if (event instanceof KeyboardEvent && ![" ", "Enter"].includes(event.key)) return;
    choose();
  };
  for (const name of ["click", "keyup"]) entry.addEventListener(name, listener, { signal });
}

/**
 * Close the menu, and focus its button.
 * @param {HTMLElement} controller @param {HTMLElement} menu
 */
function closeMenu(controller, menu) {
  element(controller, "media-settings-menu-button").focus();
  menu.hidden = true;
}

/**
 * Start the dialog of keyboard shortcuts, with the switch for single characters. The switch holds
 * the setting, so that it also works without browser storage.
 * @param {HTMLElement} box @param {HTMLElement} controller @param {AbortSignal} signal
 */
export function startKeysDialog(box, controller, signal) {
  const dialog = /** @type {HTMLDialogElement} */ (element(box, "[data-player-keys]"));
  const letters = /** @type {HTMLInputElement} */ (element(dialog, "input"));
  const menu = element(controller, ".player__menu");
  const entry = element(menu, "[data-opens-keys]");
  letters.checked = settings().hasLetterKeys ?? true;
  const saveSetting = () => saveSettings({ hasLetterKeys: letters.checked });
  letters.addEventListener("change", saveSetting, { signal });
  // Otherwise the switch at the end gets the focus, and a small screen shows only the end. Browsers
  // report an error for the autofocus attribute in frames of other sites, but not for the property.
  dialog.autofocus = true;
  const open = () => {
    // When the dialog closes, the browser returns the focus to this element, which must be visible.
    closeMenu(controller, menu);
    dialog.showModal();
  };
  onChoice(entry, open, signal);
  return { showKeys: () => dialog.showModal(), hasLetterKeys: () => letters.checked };
}
