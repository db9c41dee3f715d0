/**
 * The frame under the playhead becomes the poster: fills in the time, follows how it stands, and
 * gives the new poster to the player.
 */

import { statusOf } from "./form-requests.js";
import { announce } from "./live.js";
import { player } from "./player-of-page.js";

/** @type {string | null} */
let lastVersion = null;
let lastWords = "";

/** @type {import("../lifecycle.js").Start} */
export function posterTool(element, signal) {
  const form = element.querySelector("form");
  const time = form?.querySelector("input");
  if (!form || !time) return;
  // Before anything else reads the form.
  element.addEventListener(
    "submit",
    (event) => {
      const isBusy = form.querySelector("[aria-disabled]") !== null;
      if (isBusy) event.stopPropagation();
      if (isBusy) event.preventDefault();
      time.value = String(player()?.currentTime ?? 0);
    },
    { capture: true, signal },
  );
  form.addEventListener("htmx:response:error", (event) => failed(element, event), { signal });
  form.addEventListener("htmx:error", () => failed(element), { signal });
  follow(element);
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
  const words =
    refusal && statusOf(refusal) === 401
      ? "You are signed out. Sign in, then try again."
      : "The portal didn’t take that. Check your connection, then try again.";
  const place = element.querySelector("[data-poster-trouble]");
  if (place instanceof HTMLElement) {
    place.textContent = words;
    place.hidden = false;
  }
  announce(words);
}
