/** Forms that are replaced by their response, and what to do if there is none. */

import { announce, contextOf, element, setText } from "../dom.js";
import { savedForm } from "./save-bar.js";

const GONE = 410;
const UNAVAILABLE =
  "This video is no longer available, so nothing can be saved. Copy what you still need.";
const SAVING = "Saving…";
const SIGNED_OUT = "You are signed out. Sign in, then try again; what you typed is still here.";
const NO_ANSWER =
  "The portal can’t be reached. Check your connection, then try again; what you typed is still here.";

/**
 * Form of a video's details: warns before unsaved changes are lost, and announces saves.
 * @type {import("../lifecycle.js").Start}
 */
export function editForm(form, signal) {
  if (!(form instanceof HTMLFormElement)) return;
  savedForm(form, signal);
  let isDirty = Boolean(form.querySelector("#conflict, [aria-invalid]"));
  const touched = () => {
    isDirty = true;
    form.querySelector("[data-saved-words]")?.remove();
  };
  form.addEventListener("input", touched, { signal });
  const show = followRequests(form, signal, touched);
  const keep = (/** @type {Event} */ event) => {
    if (contextOf(event).response.status !== GONE || !(isDirty || event.target === form)) return;
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

/**
 * Keep the typed values and the way back when the video has been deleted.
 * @param {HTMLFormElement} form
 */
function outlive(form) {
  form.querySelector(".edit__actions")?.remove();
  const link = form.querySelector("[data-library]");
  if (link instanceof HTMLElement) link.hidden = false;
  form.closest("#video-page")?.replaceChildren(form);
}

/**
 * Panel of a video's visibility: announces the result of a change.
 * @param {HTMLElement} panel @param {AbortSignal} signal
 */
export function accessPanel(panel, signal) {
  const form = panel.querySelector("form");
  if (form) {
    savedForm(form, signal);
    followRequests(form, signal);
  }
  const state = panel.querySelector("[data-state]")?.textContent?.trim();
  if ("saved" in panel.dataset) announce(`Saved. ${state}`);
}

/**
 * Show that a request is in progress, and the error of one that returned no form.
 * @param {HTMLFormElement} form @param {AbortSignal} signal @param {() => void} [onTrouble]
 * @returns {(words: string) => void} says something else in the same place
 */
export function followRequests(form, signal, onTrouble = () => {}) {
  const trouble = form.querySelector("[data-edit-trouble]");
  const button = form.querySelector("[type=submit]");
  if (!(trouble instanceof HTMLElement) || !(button instanceof HTMLElement)) return () => {};
  const label = button.textContent;
  /** @param {string} words */
  const show = (words) => {
    setText(trouble, "[data-text]", words);
    element(trouble, "[data-sign-in]").hidden = words !== SIGNED_OUT;
    trouble.hidden = !words;
    if (words) onTrouble();
  };
  const begin = () => {
    show("");
    button.setAttribute("aria-disabled", "true");
    button.textContent = SAVING;
  };
  const end = () => {
    button.removeAttribute("aria-disabled");
    button.textContent = label;
  };
  form.addEventListener("htmx:before:request", begin, { signal });
  form.addEventListener("htmx:finally:request", end, { signal });
  sayFaults(form, signal, show, [409, 410, 412, 422]);
  return show;
}

/**
 * Show the error of an element's request that returned nothing to show.
 * @param {HTMLElement} sender @param {AbortSignal} signal @param {(words: string) => void} say
 * @param {number[]} [shown] statuses whose answer says it itself
 */
export function sayFaults(sender, signal, say, shown = []) {
  const refused = (/** @type {Event} */ event) => {
    const { status } = contextOf(event).response;
    if (shown.includes(status)) return;
    say(status === 401 ? SIGNED_OUT : `The portal refused this (status ${status}). Try again.`);
  };
  sender.addEventListener("htmx:response:error", refused, { signal });
  sender.addEventListener("htmx:error", () => say(NO_ANSWER), { signal });
}
