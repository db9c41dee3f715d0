/** What opens and closes: dialogs and menus. */

import { opensElsewhere } from "./dom.js";

/**
 * A link or button that asks in a dialog of its page what else a page of its own would ask. One
 * that is about one video of several tells the dialog which, by data-video and data-title.
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
 * A <details> that is a menu: Escape closes it, and so does a press elsewhere.
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
    // A choice was made, which leads elsewhere.
    const isLink = target instanceof Element && target.closest("[data-opens]");
    if (!isInside || isLink) details.open = false;
  };
  document.addEventListener("click", clicked, { signal });
}
