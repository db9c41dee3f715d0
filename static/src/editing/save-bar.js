/**
 * Bar of a video's workshop, with one button that saves all changed forms. It is visible only while
 * there are unsaved changes.
 */

import { confirmLeaving, element, setText } from "../dom.js";
import { gettext } from "../messages.js";

/**
 * Forms of the page with their saved values; null after a refusal, because the form then shows
 * values that are not saved.
 * @type {Map<HTMLFormElement, string | null>}
 */
const forms = new Map();
/** @type {Set<HTMLFormElement>} */
const sending = new Set();
let isDiscarded = false;

/**
 * Track the unsaved changes of a form.
 * @param {HTMLFormElement} form @param {AbortSignal} signal
 */
export function trackForm(form, signal) {
  const isRefused = form.querySelector("[aria-invalid=true], .choice-of, [data-unsaved]") !== null;
  forms.set(form, isRefused ? null : savedValuesOf(form));
  // No update of the bar here: the form that replaces this one updates it.
  signal.addEventListener("abort", () => {
    forms.delete(form);
    sending.delete(form);
  });
  const handleStart = () => updateBar(sending.add(form));
  const handleEnd = () => updateBar(sending.delete(form));
  form.addEventListener("htmx:before:request", handleStart, { signal });
  form.addEventListener("htmx:finally:request", handleEnd, { signal });
  confirmLeaving(() => isChanged(form) && !isDiscarded, signal);
  for (const name of ["input", "change"]) form.addEventListener(name, updateBar, { signal });
  updateBar();
}

/** @param {HTMLElement} bar @param {AbortSignal} signal */
export function startSaveBar(bar, signal) {
  const submitChanged = () => {
    if (!sending.size) for (const form of changedForms()) form.requestSubmit();
  };
  element(bar, "[data-save]").addEventListener("click", submitChanged, { signal });
  element(bar, "[data-discard]").addEventListener("click", () => (isDiscarded = true), { signal });
  updateBar();
}

/**
 * Show the bar while there are unsaved changes.
 * @param {unknown} [_cause] lets it be an event listener
 */
function updateBar(_cause) {
  const bar = document.querySelector("[data-save-bar]");
  if (!(bar instanceof HTMLElement)) return;
  const isFocused = bar.contains(document.activeElement);
  bar.hidden = changedForms().length === 0;
  setText(bar, "[data-save]", sending.size ? gettext("Saving…") : gettext("Save changes"));
  element(bar, "[data-save]").setAttribute("aria-disabled", String(sending.size > 0));
  const savedNote = document.querySelector("[data-saved-words]");
  if (bar.hidden && isFocused && savedNote instanceof HTMLElement) savedNote.focus();
}

/** Return whether a tracked form has unsaved changes. @param {HTMLFormElement} form */
export const isChanged = (form) => forms.get(form) !== valuesOf(form);

const changedForms = () => [...forms.keys()].filter(isChanged);

/**
 * Return the values that the portal has rendered, although people may have changed some before this
 * script started.
 * @param {HTMLFormElement} form @returns {string}
 */
function savedValuesOf(form) {
  const copy = /** @type {HTMLFormElement} */ (form.cloneNode(true));
  copy.reset();
  return valuesOf(copy);
}

/** Return the values of a form except its files. @param {HTMLFormElement} form @returns {string} */
function valuesOf(form) {
  return JSON.stringify([...new FormData(form)].map(([name, value]) => [name, String(value)]));
}
