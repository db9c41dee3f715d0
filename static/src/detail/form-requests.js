/** Forms on a video's page whose answer takes their place: what to do when none comes. */

/**
 * Says that a request is under way, and what went wrong with one that brought no form back.
 * @param {HTMLFormElement} form
 * @param {AbortSignal} signal
 * @param {() => void} [onTrouble]
 * @returns {(words: string) => void} says something else in the same place
 */
export function followRequests(form, signal, onTrouble = () => {}) {
  const trouble = form.querySelector("[data-edit-trouble]");
  const button = form.querySelector("[type=submit]");
  if (!(trouble instanceof HTMLElement) || !(button instanceof HTMLElement)) return () => {};
  const label = button.textContent;
  /** @param {string} words */
  const show = (words) => {
    const place = trouble.querySelector("[data-text]");
    const link = trouble.querySelector("[data-sign-in]");
    if (place) place.textContent = words;
    if (link instanceof HTMLElement) link.hidden = words !== SIGNED_OUT;
    trouble.hidden = !words;
    if (words) onTrouble();
  };
  form.addEventListener(
    "htmx:before:request",
    () => {
      show("");
      button.setAttribute("aria-disabled", "true");
      button.textContent = SAVING;
    },
    { signal },
  );
  form.addEventListener("htmx:response:error", (event) => show(refusal(event)), { signal });
  form.addEventListener("htmx:error", () => show(NO_ANSWER), { signal });
  form.addEventListener(
    "htmx:finally:request",
    () => {
      button.removeAttribute("aria-disabled");
      button.textContent = label;
    },
    { signal },
  );
  return show;
}

const SAVING = "Saving…";
const SIGNED_OUT = "You are signed out. Sign in to go on; what you typed is still here.";
const NO_ANSWER =
  "The portal can’t be reached. Check your connection and save again; what you typed is still here.";

/**
 * @param {Event} event
 * @returns {string} empty where the answer says it itself
 */
function refusal(event) {
  const status = statusOf(event);
  if ([409, 410, 412, 422].includes(status)) return "";
  if (status === 401) return SIGNED_OUT;
  if (status === 413) return "This is far more text than a video may have. Shorten it, then save.";
  return `The portal could not save this (status ${status}). Try again; what you typed is still here.`;
}

/** @param {Event} event of htmx @returns {number} */
export function statusOf(event) {
  return event instanceof CustomEvent ? event.detail.ctx.response.status : 0;
}
