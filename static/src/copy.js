/**
 * Copies text. <button data-copy="id of the field" disabled> copies the value of a field, and
 * becomes enabled; if that fails, the text is selected. <button data-copies="address" hidden>
 * copies an address.
 */

import { announce } from "./dom.js";

const SHOWN_MS = 2_000;

/** @type {import("./lifecycle.js").Start} */
export function copyButton(button, signal) {
  const field = document.getElementById(button.dataset.copy ?? "");
  if (!(field instanceof HTMLInputElement)) return;
  const label = field.labels?.[0]?.textContent?.trim() ?? "";
  const copy = async () => {
    if (await copied(field.value, button)) return announce(`${label} copied`);
    field.focus();
    field.select();
    announce(`${label} is selected: copy it with the keyboard`);
  };
  button.addEventListener("click", copy, { signal });
  if (button instanceof HTMLButtonElement) button.disabled = false;
}

/** @param {HTMLElement} button @param {AbortSignal} signal */
export function copyLink(button, signal) {
  const copy = async () => {
    const isCopied = await copied(button.dataset.copies ?? "", button);
    const refusal = "Couldn’t copy. Open the video and copy its address instead.";
    announce(isCopied ? "Link copied" : refusal);
  };
  button.addEventListener("click", copy, { signal });
  button.hidden = false;
}

/**
 * Copy a text; without the clipboard API (on insecure pages) by the browser's older command.
 * @param {string} text
 * @param {HTMLElement} button shows for a moment that it was done, and keeps the focus
 * @returns {Promise<boolean>} false where the browser allows neither way
 */
export async function copied(text, button) {
  // The API is missing or refused.
  const isWritten = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  const isDone = isWritten || selectedAndCopied(text, button);
  if (isDone) {
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, SHOWN_MS);
  }
  return isDone;
}

/** @param {string} text @param {HTMLElement} button */
function selectedAndCopied(text, button) {
  const field = document.createElement("textarea");
  field.className = "visually-hidden";
  field.readOnly = true;
  field.value = text;
  button.after(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  button.focus();
  return isCopied;
}
