/**
 * Chooses a frame or a picture as the poster: sends the time of the playhead, refuses files that
 * are too large, follows the progress, and updates the player.
 */

import { announce, element } from "../dom.js";
import { sayFaults } from "./forms.js";
import { player } from "./watch.js";

/** @type {string | null} */
let lastVersion = null;
let lastWords = "";

/** @param {HTMLElement} section @param {AbortSignal} signal */
export function posterTool(section, signal) {
  // Runs before other listeners read the form.
  section.addEventListener("submit", prepare, { capture: true, signal });
  const say = (/** @type {string} */ words) => {
    const place = element(section, "[data-poster-trouble]");
    place.textContent = words;
    place.hidden = false;
    announce(words);
  };
  sayFaults(section, signal, say, [422]);
  follow(section);
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

/** @param {HTMLElement} section */
function follow(section) {
  const { poster: version = "", words = "" } = section.dataset;
  const image = section.querySelector("img");
  const video = player();
  if (lastVersion !== null && version !== lastVersion && image && video) video.poster = image.src;
  if (words && words !== lastWords) announce(words);
  lastVersion = version;
  lastWords = words;
}
