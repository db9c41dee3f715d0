/** What was refused to who is signed out: links that ask in this tab, and forms sent by scripts. */

import { askAgain, signedInAgain } from "./sign-in-again.js";

/**
 * @param {HTMLElement} _dialog there on pages that can ask
 * @param {AbortSignal} signal
 */
export function followRefusals(_dialog, signal) {
  document.addEventListener("click", linkClicked, { signal });
  document.addEventListener("htmx:response:error", answered, { signal });
}

/** @param {MouseEvent} event */
function linkClicked(event) {
  const link = event.target instanceof Element ? event.target.closest("[data-sign-in]") : null;
  // A new tab or window was asked for: that is the page's job.
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  goOn(link.closest("form"));
}

/** @param {Event} event */
function answered(event) {
  const status = event instanceof CustomEvent ? event.detail.ctx.response.status : 0;
  if (status === 401 && event.target instanceof HTMLFormElement) goOn(event.target);
}

/** @param {HTMLFormElement | null} form sent again; what waits otherwise goes on by itself */
async function goOn(form) {
  askAgain();
  // Of another person the dialog tells already.
  const isDone = await signedInAgain().catch(() => false);
  if (isDone && form?.hasAttribute("hx-post")) form.requestSubmit();
}
