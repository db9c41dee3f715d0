/**
 * A link or button that asks in a dialog of its page what else a page of its own would ask. One
 * that is about one video of several tells the dialog which, by data-video and data-title.
 */

import { closeByBackdrop } from "../backdrop.js";

/** @type {import("../lifecycle.js").Start} */
export function dialogLink(link, signal) {
  const dialog = document.getElementById(link.dataset.opens ?? "");
  if (!(dialog instanceof HTMLDialogElement)) return;
  link.addEventListener(
    "click",
    (event) => {
      // A new tab or window was asked for: that is the page's job.
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (link.dataset.video) tell(dialog, link.dataset.video, link.dataset.title ?? "");
      dialog.showModal();
    },
    { signal },
  );
  const keep = dialog.querySelector("[data-closes]");
  keep?.addEventListener("click", () => dialog.close(), { signal });
  closeByBackdrop(dialog, signal);
}

/**
 * @param {HTMLDialogElement} dialog
 * @param {string} id
 * @param {string} title
 */
function tell(dialog, id, title) {
  const field = dialog.querySelector("input[name=id]");
  const place = dialog.querySelector("[data-loss]");
  if (field instanceof HTMLInputElement) field.value = id;
  if (place) place.textContent = title;
}
