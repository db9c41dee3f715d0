/** Forms that change videos of a list. The page comes back in place; here is said when it doesn't. */

import { statusOf } from "../detail/form-requests.js";

const NO_ANSWER = "The portal can’t be reached. Check your connection, then try again.";
const SIGNED_OUT = "You are signed out. Sign in, then try again.";

/**
 * @param {HTMLElement} form
 * @param {AbortSignal} signal
 */
export function bulkForm(form, signal) {
  /** @param {string} name @param {(event: Event) => void} handle */
  const on = (name, handle) => form.addEventListener(name, handle, { signal });
  on("htmx:before:request", () => {
    say("");
    for (const dialog of form.ownerDocument.querySelectorAll("dialog[open]")) {
      if (dialog instanceof HTMLDialogElement) dialog.close();
    }
  });
  on("htmx:response:error", (event) => say(refusal(statusOf(event))));
  on("htmx:error", () => say(NO_ANSWER));
}

/** @param {number} status */
function refusal(status) {
  if (status === 401) return SIGNED_OUT;
  return `The portal could not do this (status ${status}). Try again.`;
}

/** @param {string} words */
function say(words) {
  const place = document.querySelector("[data-bulk-error]");
  if (!(place instanceof HTMLElement)) return;
  place.textContent = words;
  place.hidden = !words;
}
