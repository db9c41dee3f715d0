/**
 * Panel of a video's poster: sends the time of the playhead, refuses files that are too large,
 * announces the progress, and updates the player's poster.
 */

import { announce, element } from "../dom.js";
import { showRequestErrors } from "../editing/forms.js";
import { playerVideo } from "../watching/watch.js";

/** @type {string | null} */
let lastVersion = null;
let lastMessage = "";

/** @param {HTMLElement} section @param {AbortSignal} signal */
export function startPosterTool(section, signal) {
  // Runs before other listeners read the form.
  section.addEventListener("submit", handleSubmit, { capture: true, signal });
  const showMessage = (/** @type {string} */ message) => {
    const notice = element(section, "[data-poster-trouble]");
    notice.textContent = message;
    notice.hidden = false;
    announce(message);
  };
  showRequestErrors(section, signal, showMessage, [422]);
  showProgress(section);
}

/** Fill in the playhead's time, and stop a form that can't be sent. @param {SubmitEvent} event */
function handleSubmit(event) {
  const form = event.target;
  if (!(form instanceof HTMLFormElement)) return;
  const time = form.querySelector("input[name=time]");
  if (time instanceof HTMLInputElement) time.value = String(playerVideo()?.currentTime ?? 0);
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

/** Announce a new state, and show a new poster in the player. @param {HTMLElement} section */
function showProgress(section) {
  const { poster: version = "", words: message = "" } = section.dataset;
  const image = section.querySelector("img");
  const video = playerVideo();
  if (lastVersion !== null && version !== lastVersion && image && video) video.poster = image.src;
  if (message && message !== lastMessage) announce(message);
  lastVersion = version;
  lastMessage = message;
}
