/** The table of videos: selection, bulk actions, and their results. */

import { sayFaults } from "../detail/forms.js";
import { setTexts } from "../dom.js";

/**
 * Forms of bulk actions. The page is replaced in place; errors are shown here.
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
 * Show the number of selected rows, and select all rows of the page.
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
 * Remove the result of an action once it can no longer be undone.
 * @param {HTMLElement} element @param {AbortSignal} signal
 */
export function toast(element, signal) {
  const timeout_s = Number(element.dataset.toast);
  const timer = setTimeout(() => {
    // If it has the focus, the focus moves to the page's content.
    if (element.contains(document.activeElement)) document.getElementById("main")?.focus();
    element.remove();
  }, timeout_s * 1000);
  signal.addEventListener("abort", () => clearTimeout(timer));
}
