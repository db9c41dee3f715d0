/** Forms that their response replaces, and the errors of responses that contain no form. */

import { announce, contextOf, element, setText } from "../dom.js";
import { gettext } from "../messages.js";
import { isChanged, trackForm } from "./save-bar.js";

const GONE = 410;
const UNAVAILABLE = gettext(
  "This video is no longer available, so nothing can be saved. Copy what you still need.",
);
const SAVING = gettext("Saving…");
const SIGNED_OUT = gettext(
  "You are signed out. Sign in, then try again; what you typed is still here.",
);
const NO_RESPONSE = gettext(
  "The portal can’t be reached. Check your connection, then try again; what you typed is still here.",
);

/**
 * Start the form of a video's details: warn before unsaved changes are lost, and announce saves.
 * @type {import("../lifecycle.js").Start}
 */
export function startEditForm(form, signal) {
  if (!(form instanceof HTMLFormElement)) return;
  trackForm(form, signal);
  let isDirty = isChanged(form) || form.querySelector("#conflict") !== null;
  const markDirty = () => {
    isDirty = true;
    form.querySelector("[data-saved-words]")?.remove();
  };
  form.addEventListener("input", markDirty, { signal });
  const showMessage = showRequestState(form, signal, markDirty);
  const keepForm = (/** @type {Event} */ event) => {
    if (contextOf(event).response.status !== GONE || !(isDirty || event.target === form)) return;
    event.preventDefault();
    showMessage(UNAVAILABLE);
    keepOnlyForm(form);
  };
  document.addEventListener("htmx:before:swap", keepForm, { signal });
  const savedText = form.querySelector("[data-saved-words]")?.textContent?.trim();
  if (savedText) {
    announce(savedText.replace(/\s+/g, " "));
    const title = document.querySelector("#workshop-head h1")?.textContent ?? "";
    // Translators: title of the page on which a video is edited.
    const pageTitle = gettext("Edit %(title)s", { title });
    document.title = document.title.replace(/^.*(?= · )/s, () => pageTitle);
  }
}

/**
 * Keep the typed values and a link to the library on the page of a deleted video.
 * @param {HTMLFormElement} form
 */
function keepOnlyForm(form) {
  form.querySelector(".edit__actions")?.remove();
  const link = form.querySelector("[data-library]");
  if (link instanceof HTMLElement) link.hidden = false;
  form.closest("#video-page")?.replaceChildren(form);
}

/**
 * Start a panel with a form: announce the result of a change.
 * @param {HTMLElement} panel @param {AbortSignal} signal
 */
export function startFormPanel(panel, signal) {
  const form = panel.querySelector("form");
  if (form) {
    trackForm(form, signal);
    showRequestState(form, signal);
  }
  const state = panel.querySelector("[data-state]")?.textContent?.trim();
  const saved = gettext("Saved.");
  if ("saved" in panel.dataset) announce(`${saved} ${state}`);
}

/**
 * Show that a request of the form is in progress, and the error of a request that returned no form.
 * @param {HTMLFormElement} form @param {AbortSignal} signal @param {() => void} [onError]
 * @returns {(message: string) => void} shows another message in the place of errors
 */
function showRequestState(form, signal, onError = () => {}) {
  const notice = form.querySelector("[data-edit-trouble]");
  const button = form.querySelector("[type=submit]:not([formaction])");
  if (!(notice instanceof HTMLElement) || !(button instanceof HTMLElement)) return () => {};
  const label = button.textContent;
  /** @param {string} message */
  const showMessage = (message) => {
    setText(notice, "[data-text]", message);
    element(notice, "[data-sign-in]").hidden = message !== SIGNED_OUT;
    notice.hidden = !message;
    if (message) onError();
  };
  let isSaving = false;
  const showSaving = () => {
    isSaving = true;
    // The response replaces the fields.
    setReadOnly(form, true);
    showMessage("");
    button.setAttribute("aria-disabled", "true");
    button.textContent = SAVING;
  };
  const showIdle = () => {
    isSaving = false;
    setReadOnly(form, false);
    button.removeAttribute("aria-disabled");
    button.textContent = label;
  };
  // Choices can't be read-only, and disabled ones would lose the focus.
  const refuseChoices = (/** @type {Event} */ event) => {
    if (!isSaving || (event instanceof KeyboardEvent && event.key === "Tab")) return;
    event.preventDefault();
    event.stopPropagation();
  };
  for (const name of ["mousedown", "click", "keydown"]) {
    form.addEventListener(name, refuseChoices, { signal, capture: true });
  }
  form.addEventListener("htmx:before:request", showSaving, { signal });
  form.addEventListener("htmx:finally:request", showIdle, { signal });
  showRequestErrors(form, signal, showMessage, [409, 410, 412, 422]);
  return showMessage;
}

/** @param {HTMLFormElement} form @param {boolean} isReadOnly */
function setReadOnly(form, isReadOnly) {
  for (const field of form.querySelectorAll("input, textarea")) {
    /** @type {HTMLInputElement} */ (field).readOnly = isReadOnly;
  }
}

/**
 * Show the errors of an element's requests.
 * @param {HTMLElement} sender @param {AbortSignal} signal
 * @param {(message: string) => void} showMessage
 * @param {number[]} [ignoredStatuses] statuses whose response is shown on the page itself
 */
export function showRequestErrors(sender, signal, showMessage, ignoredStatuses = []) {
  const handleResponseError = (/** @type {Event} */ event) => {
    const { status } = contextOf(event).response;
    if (ignoredStatuses.includes(status)) return;
    showMessage(
      status === 401
        ? SIGNED_OUT
        : gettext("The portal refused the request (status %(status)s). Try again.", { status }),
    );
  };
  sender.addEventListener("htmx:response:error", handleResponseError, { signal });
  sender.addEventListener("htmx:error", () => showMessage(NO_RESPONSE), { signal });
}
