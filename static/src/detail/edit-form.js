/** The form for a video's words: keeps what is typed from getting lost, and says what was saved. */

import { followRequests, statusOf } from "./form-requests.js";
import { announce } from "./live.js";

const GONE = 410;
const UNAVAILABLE =
  "This video is no longer available, so nothing can be saved. Copy what you still need.";

/** @type {import("../lifecycle.js").Start} */
export function editForm(form, signal) {
  if (!(form instanceof HTMLFormElement)) return;
  let isDirty = Boolean(form.querySelector("#conflict, [aria-invalid]"));
  let isSent = false;
  const touched = () => {
    isDirty = true;
    isSent = false;
    form.querySelector("[data-saved-words]")?.remove();
  };
  form.addEventListener("input", touched, { signal });
  form.addEventListener("submit", () => (isSent = true), { signal });
  const ask = (/** @type {Event} */ event) => isDirty && !isSent && event.preventDefault();
  window.addEventListener("beforeunload", ask, { signal });
  const show = followRequests(form, signal, touched);
  const keep = (/** @type {Event} */ event) => {
    if (statusOf(event) !== GONE || !(isDirty || event.target === form)) return;
    event.preventDefault();
    show(UNAVAILABLE);
    outlive(form);
  };
  document.addEventListener("htmx:before:swap", keep, { signal });
  const saved = form.querySelector("[data-saved-words]")?.textContent?.trim();
  if (saved) {
    announce(saved.replace(/\s+/g, " "));
    const title = document.querySelector("#workshop-head h1")?.textContent ?? "";
    document.title = document.title.replace(/^.*(?= · )/s, `Edit ${title}`);
  }
}

/** Leaves of the page what was typed, and the way back. @param {HTMLFormElement} form */
function outlive(form) {
  form.querySelector(".edit__actions")?.remove();
  const link = form.querySelector("[data-library]");
  if (link instanceof HTMLElement) link.hidden = false;
  form.closest("#video-page")?.replaceChildren(form);
}
