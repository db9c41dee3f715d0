/**
 * Bar of a video's workshop: one button saves all changed forms. It is visible only while there are
 * changes.
 */

import { element, setText } from "../dom.js";

/**
 * Forms of the page with their original values; null after a refusal, because no value is saved
 * yet.
 * @type {Map<HTMLFormElement, string | null>}
 */
const forms = new Map();
/** @type {Set<HTMLFormElement>} */
const sending = new Set();
let isDiscarded = false;

/** @param {HTMLFormElement} form @param {AbortSignal} signal */
export function savedForm(form, signal) {
  const isRefused = form.querySelector("[aria-invalid=true], .choice-of") !== null;
  forms.set(form, isRefused ? null : valuesOf(form));
  // The replacing form redraws the bar.
  signal.addEventListener("abort", () => {
    forms.delete(form);
    sending.delete(form);
  });
  const begin = () => draw(sending.add(form));
  const end = () => draw(sending.delete(form));
  form.addEventListener("htmx:before:request", begin, { signal });
  form.addEventListener("htmx:finally:request", end, { signal });
  const ask = (/** @type {Event} */ event) => {
    if (isChanged(form) && !isDiscarded) event.preventDefault();
  };
  window.addEventListener("beforeunload", ask, { signal });
  for (const name of ["input", "change"]) form.addEventListener(name, draw, { signal });
  draw();
}

/** @param {HTMLElement} bar @param {AbortSignal} signal */
export function saveBar(bar, signal) {
  const save = () => {
    if (!sending.size) for (const form of changedForms()) form.requestSubmit();
  };
  element(bar, "[data-save]").addEventListener("click", save, { signal });
  element(bar, "[data-discard]").addEventListener("click", () => (isDiscarded = true), { signal });
  draw();
}

/** @param {unknown} [_cause] */
function draw(_cause) {
  const bar = document.querySelector("[data-save-bar]");
  if (!(bar instanceof HTMLElement)) return;
  const isFocused = bar.contains(document.activeElement);
  bar.hidden = changedForms().length === 0;
  setText(bar, "[data-save]", sending.size ? "Saving…" : "Save changes");
  element(bar, "[data-save]").setAttribute("aria-disabled", String(sending.size > 0));
  const saved = document.querySelector("[data-saved-words]");
  if (bar.hidden && isFocused && saved instanceof HTMLElement) saved.focus();
}

/** @param {HTMLFormElement} form */
const isChanged = (form) => forms.get(form) !== valuesOf(form);

const changedForms = () => [...forms.keys()].filter(isChanged);

/** @param {HTMLFormElement} form @returns {string} without its files */
function valuesOf(form) {
  return JSON.stringify([...new FormData(form)].map(([name, value]) => [name, String(value)]));
}
