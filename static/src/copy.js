/**
 * Buttons that copy. <button data-copy="id of the field" disabled> copies the value of a field, or
 * selects it if copying fails. <button data-copies="address" hidden> copies an address. Scripts
 * enable and show these buttons.
 */

import { announce } from "./dom.js";
import { gettext } from "./messages.js";

const CONFIRMATION_MS = 2_000;

/** @type {import("./lifecycle.js").Start} */
export function startCopyButton(button, signal) {
  const field = document.getElementById(button.dataset.copy ?? "");
  if (!(field instanceof HTMLInputElement)) return;
  const label = field.labels?.[0]?.textContent?.trim() ?? "";
  const copy = async () => {
    if (await copyText(field.value, button)) {
      // Translators: the label of a field, such as "Embed code"; its gender may be any.
      return announce(gettext("%(label)s copied", { label }));
    }
    field.focus();
    field.select();
    // Translators: the label of a field, such as "Embed code"; its gender may be any.
    announce(gettext("%(label)s is selected: copy it with the keyboard", { label }));
  };
  button.addEventListener("click", copy, { signal });
  if (button instanceof HTMLButtonElement) button.disabled = false;
}

/** @param {HTMLElement} button @param {AbortSignal} signal */
export function startCopyLink(button, signal) {
  const copy = async () => {
    const isCopied = await copyText(button.dataset.copies ?? "", button);
    const failure = gettext("Couldn’t copy. Open the video and copy its address instead.");
    announce(isCopied ? gettext("Link copied") : failure);
  };
  button.addEventListener("click", copy, { signal });
  button.hidden = false;
}

/**
 * Copy a text by the clipboard API or, on insecure pages, by the browser's older command.
 * @param {string} text
 * @param {HTMLElement} button confirms the copy for a moment, and keeps the focus
 * @returns {Promise<boolean>} whether the browser allowed one of them
 */
async function copyText(text, button) {
  // The API may be missing, or refuse.
  const isWritten = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  const isDone = isWritten || copyBySelection(text, button);
  if (isDone) {
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, CONFIRMATION_MS);
  }
  return isDone;
}

/** @param {string} text @param {HTMLElement} button */
function copyBySelection(text, button) {
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
