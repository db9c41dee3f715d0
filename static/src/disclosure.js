/** Dialogs and menus. */

import { closest, opensNewTab } from "./dom.js";

/**
 * Make a link or button open a dialog instead of a page. If the dialog serves several videos,
 * data-video and data-title name the video.
 * @type {import("./lifecycle.js").Start}
 */
export function startDialogLink(link, signal) {
  const dialog = document.getElementById(link.dataset.opens ?? "");
  if (!(dialog instanceof HTMLDialogElement)) return;
  /** @param {MouseEvent} event */
  const open = (event) => {
    if (opensNewTab(event)) return;
    event.preventDefault();
    const { video: id, title = "" } = link.dataset;
    const field = dialog.querySelector("input[name=id]");
    const titleElement = dialog.querySelector("[data-loss]");
    if (id && field instanceof HTMLInputElement) field.value = id;
    if (id && titleElement) titleElement.textContent = title;
    dialog.showModal();
  };
  link.addEventListener("click", open, { signal });
  const closeButton = dialog.querySelector("[data-closes]");
  closeButton?.addEventListener("click", () => dialog.close(), { signal });
}

/**
 * Make a <details> a menu that Escape, and a click outside, close.
 * @type {import("./lifecycle.js").Start}
 */
export function startMenu(details, signal) {
  if (!(details instanceof HTMLDetailsElement)) return;
  const handleKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !details.open) return;
    event.stopPropagation();
    details.open = false;
    details.querySelector("summary")?.focus();
  };
  details.addEventListener("keydown", handleKey, { signal });
  const handleClick = (/** @type {Event} */ { target }) => {
    const isInside = target instanceof Node && details.contains(target);
    // An entry that opens a dialog closes the menu, too; other entries leave the page.
    const isLink = closest(target, "[data-opens]") !== null;
    if (!isInside || isLink) details.open = false;
  };
  document.addEventListener("click", handleClick, { signal });
}
