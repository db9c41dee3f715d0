/**
 * A frame of the video or a picture of someone's own becomes the poster: fills in the time under the
 * playhead, turns away a file that is too large, follows how it stands, and gives the new poster to
 * the player.
 */

import { announce } from "../dom.js";
import { statusOf } from "./forms.js";
import { player } from "./watch.js";

/** @type {string | null} */
let lastVersion = null;
let lastWords = "";

/** @param {HTMLElement} element @param {AbortSignal} signal */
export function posterTool(element, signal) {
  // Before anything else reads a form.
  element.addEventListener("submit", prepare, { capture: true, signal });
  element.addEventListener("htmx:response:error", (event) => failed(element, event), { signal });
  element.addEventListener("htmx:error", () => failed(element), { signal });
  follow(element);
}

/** @param {SubmitEvent} event */
function prepare(event) {
  const form = event.target;
  if (!(form instanceof HTMLFormElement)) return;
  const time = form.querySelector("input[name=time]");
  if (time instanceof HTMLInputElement) time.value = String(player()?.currentTime ?? 0);
  const file = form.querySelector("input[type=file]");
  const size = file instanceof HTMLInputElement ? (file.files?.[0]?.size ?? 0) : 0;
  const isBusy = form.querySelector("[aria-disabled]") !== null;
  const isTooLarge = size > Number(form.dataset.largest ?? Infinity);
  if (!isBusy && !isTooLarge) return;
  event.stopPropagation();
  event.preventDefault();
  const fault = form.querySelector(".field__error");
  if (isBusy || !(file instanceof HTMLElement) || !fault) return;
  fault.textContent = form.dataset.tooLarge ?? "";
  file.setAttribute("aria-invalid", "true");
  file.focus();
  announce(fault.textContent);
}

/** @param {HTMLElement} element */
function follow(element) {
  const version = element.dataset.poster ?? "";
  const words = element.dataset.words ?? "";
  const image = element.querySelector("img");
  const video = player();
  if (lastVersion !== null && version !== lastVersion && image && video) video.poster = image.src;
  if (words && words !== lastWords) announce(words);
  lastVersion = version;
  lastWords = words;
}

/** @param {HTMLElement} element @param {Event} [refusal] */
function failed(element, refusal) {
  const status = refusal ? statusOf(refusal) : 0;
  // Such an answer has said it itself.
  if (status === 422) return;
  const words =
    status === 401
      ? "You are signed out. Sign in, then try again."
      : "The portal didn’t take that. Check your connection, then try again.";
  const place = element.querySelector("[data-poster-trouble]");
  if (place instanceof HTMLElement) {
    place.textContent = words;
    place.hidden = false;
  }
  announce(words);
}
