/** The words about a video and the form that takes their place: where the focus goes on. */

import { announce } from "./live.js";

let isEditing = false;
let isSaved = false;

// The answer to a form that was saved says so.
document.body.addEventListener("metadata-saved", () => {
  isSaved = true;
  sayIfSaved();
});

/** @type {import("../lifecycle.js").Start} */
export function summary(element) {
  if (!isEditing) return;
  isEditing = false;
  document.title = document.title.replace(/^.*(?= · )/s, title(element));
  document.getElementById("edit-link")?.focus();
  sayIfSaved();
}

/** @type {import("../lifecycle.js").Start} */
export function editForm(form, signal) {
  if (!(form instanceof HTMLFormElement)) return;
  isEditing = true;
  isSaved = false;
  let isDirty = Boolean(form.querySelector("#conflict, [aria-invalid]"));
  form.addEventListener(
    "input",
    () => {
      isDirty = true;
    },
    { signal },
  );
  for (const event of ["submit", "click"]) {
    form.addEventListener(event, (it) => (isDirty &&= !isMeant(it)), { signal });
  }
  window.addEventListener("beforeunload", (event) => isDirty && event.preventDefault(), { signal });
  followRequests(form, signal, () => {
    isDirty = true;
  });
}

/**
 * @param {HTMLElement} element
 * @returns {string}
 */
function title(element) {
  return element.querySelector("h1")?.textContent?.trim() ?? "";
}

function sayIfSaved() {
  if (!isSaved || isEditing) return;
  isSaved = false;
  announce("Changes saved");
}

/**
 * @param {Event} event
 * @returns {boolean} whether what was typed is to leave the page, or to be given up
 */
function isMeant(event) {
  if (event.type === "submit") return true;
  return event.target instanceof Element && event.target.closest("[data-discards]") !== null;
}

/**
 * Says what went wrong with a request that brought no form back.
 * @param {HTMLFormElement} form
 * @param {AbortSignal} signal
 * @param {() => void} onTrouble
 */
function followRequests(form, signal, onTrouble) {
  const trouble = form.querySelector("[data-edit-trouble]");
  const button = form.querySelector("#save-button");
  if (!(trouble instanceof HTMLElement)) return;
  /** @param {string} words */
  const show = (words) => {
    const place = trouble.querySelector("[data-text]");
    if (place) place.textContent = words;
    trouble.hidden = !words;
    if (words) onTrouble();
  };
  form.addEventListener(
    "htmx:before:request",
    () => {
      show("");
      button?.setAttribute("aria-disabled", "true");
    },
    { signal },
  );
  form.addEventListener("htmx:response:error", (event) => show(refusal(event)), { signal });
  form.addEventListener("htmx:error", () => show(NO_ANSWER), { signal });
  form.addEventListener("htmx:finally:request", () => button?.removeAttribute("aria-disabled"), {
    signal,
  });
}

const NO_ANSWER =
  "The portal can’t be reached. Check your connection and save again; what you typed is still here.";

/**
 * @param {Event} event
 * @returns {string} empty where the answer is the form, which says it itself
 */
function refusal(event) {
  const status = event instanceof CustomEvent ? event.detail.ctx.response.status : 0;
  if (status === 422 || status === 409) return "";
  if (status === 404) {
    return "This video was deleted meanwhile, so nothing could be saved. Copy what you still need.";
  }
  if (status === 413) return "This is far more text than a video may have. Shorten it, then save.";
  return `The portal could not save this (status ${status}). Try again; what you typed is still here.`;
}
