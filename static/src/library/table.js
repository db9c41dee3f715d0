/** Table of videos: selection, bulk actions, and their results. */

import { setTexts } from "../dom.js";
import { showRequestErrors } from "../editing/forms.js";
import { formatNumber } from "../format.js";
import { ngettext } from "../messages.js";

/**
 * Start a form of bulk actions. The response replaces the page; this shows errors of requests.
 * @param {HTMLElement} form @param {AbortSignal} signal
 */
export function startBulkForm(form, signal) {
  const handleStart = () => {
    showError("");
    const dialog = document.querySelector("dialog[open]");
    if (dialog instanceof HTMLDialogElement) dialog.close();
  };
  const handleClick = (/** @type {MouseEvent} */ event) => {
    const focused = document.activeElement;
    if (event.detail || !(focused instanceof HTMLInputElement)) return;
    // Enter in a field has pressed the first button of the form, instead of that of its panel.
    const button = focused.closest(".bar__panel")?.querySelector("button");
    if (!button || event.target === button) return;
    event.preventDefault();
    button.click();
  };
  form.addEventListener("click", handleClick, { signal });
  form.addEventListener("htmx:before:request", handleStart, { signal });
  showRequestErrors(form, signal, showError);
}

/** @param {string} message */
function showError(message) {
  const notice = document.querySelector("[data-bulk-error]");
  if (!(notice instanceof HTMLElement)) return;
  notice.textContent = message;
  notice.hidden = !message;
}

/**
 * Show the number of selected rows, and select all rows of the page.
 * @type {import("../lifecycle.js").Start}
 */
export function startSelection(table, signal) {
  const form = table.closest("form");
  const selectAllCell = table.querySelector("[data-select-all]");
  const selectAll = selectAllCell?.querySelector("input");
  if (!form || !(selectAllCell instanceof HTMLElement) || !selectAll) return;
  const boxes = [...table.querySelectorAll("tbody input[type=checkbox]")].filter(
    (box) => box instanceof HTMLInputElement,
  );
  selectAllCell.hidden = false;
  const showCount = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    selectAll.checked = chosen === boxes.length;
    selectAll.indeterminate = chosen > 0 && !selectAll.checked;
    const values = { count: formatNumber(chosen) };
    const question = ngettext(
      "Delete %(count)s video?",
      "Delete %(count)s videos?",
      chosen,
      values,
    );
    // Translators: number of selected videos.
    const count = ngettext("%(count)s selected", "%(count)s selected", chosen, values);
    setTexts(form, { count: chosen ? count : "", question });
  };
  const handleChange = (/** @type {Event} */ { target }) => {
    if (target === selectAll) for (const box of boxes) box.checked = selectAll.checked;
    showCount();
  };
  table.addEventListener("change", handleChange, { signal });
  showCount();
}

/**
 * Remove the toast of an action when the action can no longer be undone.
 * @param {HTMLElement} element @param {AbortSignal} signal
 */
export function startToast(element, signal) {
  const timeout_s = Number(element.dataset.toast);
  const timer = setTimeout(() => {
    // If it has the focus, the focus moves to the page's content.
    if (element.contains(document.activeElement)) document.getElementById("main")?.focus();
    element.remove();
  }, timeout_s * 1000);
  signal.addEventListener("abort", () => clearTimeout(timer));
}
