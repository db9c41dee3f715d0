/** Dialogs and menus. */

import { opensElsewhere } from "./dom.js";

/**
 * A link or button that opens a dialog instead of a page. If the dialog serves several videos,
 * data-video and data-title name the video.
 * @type {import("./lifecycle.js").Start}
 */
export function dialogLink(link, signal) {
  const dialog = document.getElementById(link.dataset.opens ?? "");
  if (!(dialog instanceof HTMLDialogElement)) return;
  /** @param {MouseEvent} event */
  const open = (event) => {
    if (opensElsewhere(event)) return;
    event.preventDefault();
    const { video: id, title = "" } = link.dataset;
    const field = dialog.querySelector("input[name=id]");
    const place = dialog.querySelector("[data-loss]");
    if (id && field instanceof HTMLInputElement) field.value = id;
    if (id && place) place.textContent = title;
    dialog.showModal();
  };
  link.addEventListener("click", open, { signal });
  const keep = dialog.querySelector("[data-closes]");
  keep?.addEventListener("click", () => dialog.close(), { signal });
}

/**
 * A <details> as a menu: closed by Escape, and by a press elsewhere.
 * @type {import("./lifecycle.js").Start}
 */
export function menu(details, signal) {
  if (!(details instanceof HTMLDetailsElement)) return;
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !details.open) return;
    event.stopPropagation();
    details.open = false;
    details.querySelector("summary")?.focus();
  };
  details.addEventListener("keydown", pressed, { signal });
  const clicked = (/** @type {Event} */ { target }) => {
    const isInside = target instanceof Node && details.contains(target);
    // A choice in the menu navigates.
    const isLink = target instanceof Element && target.closest("[data-opens]");
    if (!isInside || isLink) details.open = false;
  };
  document.addEventListener("click", clicked, { signal });
}
