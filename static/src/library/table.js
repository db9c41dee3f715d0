/** The table of videos: which rows are chosen, what is done with them, and what has come of it. */

import { sayFaults } from "../detail/forms.js";
import { setTexts } from "../dom.js";

/**
 * Forms that change videos of a list. The page comes back in place; here is said when it doesn't.
 * @param {HTMLElement} form @param {AbortSignal} signal
 */
export function bulkForm(form, signal) {
  const begin = () => {
    say("");
    const dialog = document.querySelector("dialog[open]");
    if (dialog instanceof HTMLDialogElement) dialog.close();
  };
  form.addEventListener("htmx:before:request", begin, { signal });
  sayFaults(form, signal, say);
}

/** @param {string} words */
function say(words) {
  const place = document.querySelector("[data-bulk-error]");
  if (!(place instanceof HTMLElement)) return;
  place.textContent = words;
  place.hidden = !words;
}

/**
 * How many rows are chosen, and all of the page at once.
 * @type {import("../lifecycle.js").Start}
 */
export function selection(table, signal) {
  const form = table.closest("form");
  const every = table.querySelector("[data-select-all]");
  const all = every?.querySelector("input");
  if (!form || !(every instanceof HTMLElement) || !all) return;
  const boxes = [...table.querySelectorAll("tbody input[type=checkbox]")].filter(
    (box) => box instanceof HTMLInputElement,
  );
  every.hidden = false;
  const count = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && !all.checked;
    const question = `Delete ${chosen === 1 ? "1 video" : `${chosen} videos`}?`;
    setTexts(form, { count: chosen ? `${chosen} selected` : "", question });
  };
  const changed = (/** @type {Event} */ { target }) => {
    if (target === all) for (const box of boxes) box.checked = all.checked;
    count();
  };
  table.addEventListener("change", changed, { signal });
  count();
}

/**
 * What has come of an action goes once there is nothing more to be done about it.
 * @param {HTMLElement} element @param {AbortSignal} signal
 */
export function toast(element, signal) {
  const timeout_s = Number(element.dataset.toast);
  const timer = setTimeout(() => {
    // Whose focus it has goes on from the page's content.
    if (element.contains(document.activeElement)) document.getElementById("main")?.focus();
    element.remove();
  }, timeout_s * 1000);
  signal.addEventListener("abort", () => clearTimeout(timer));
}
