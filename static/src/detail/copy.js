/**
 * Copies what a field holds: <button data-copy="id of the field" disabled>, which can be pressed
 * from now on. Where the clipboard API is missing (pages that are not secure) the browser's older
 * way does; where that fails as well, the text is left selected.
 */

import { announce } from "./live.js";

const SHOWN_MS = 2_000;

/**
 * @param {HTMLElement} button
 * @param {AbortSignal} signal
 */
export function copyButton(button, signal) {
  button.addEventListener("click", () => copy(button), { signal });
  if (button instanceof HTMLButtonElement) button.disabled = false;
}

/** @param {HTMLElement} button */
async function copy(button) {
  const field = document.getElementById(button.dataset.copy ?? "");
  if (!(field instanceof HTMLInputElement)) return;
  const label = field.labels?.[0]?.textContent?.trim() ?? "";
  if ((await written(field.value)) || copiedFrom(field, button)) {
    announce(`${label} copied`);
    confirm(button);
  } else {
    field.focus();
    field.select();
    announce(`${label} is selected: copy it with the keyboard`);
  }
}

/**
 * @param {string} text
 * @returns {Promise<boolean>}
 */
async function written(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Missing, or not allowed.
    return false;
  }
}

/**
 * @param {HTMLInputElement} field
 * @param {HTMLElement} button keeps the focus
 * @returns {boolean}
 */
function copiedFrom(field, button) {
  field.select();
  const isCopied = document.execCommand("copy");
  if (isCopied) {
    field.setSelectionRange(0, 0);
    button.focus();
  }
  return isCopied;
}

/** @param {HTMLElement} button */
function confirm(button) {
  button.dataset.copied = "";
  setTimeout(() => delete button.dataset.copied, SHOWN_MS);
}
