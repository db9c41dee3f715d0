/**
 * Options for sharing a video: the start time, and the size and autoplay of an embedded player.
 * When the video becomes ready, the section is replaced, but the form with the options stays.
 */

import { formatClock, parseStartTime_s } from "../format.js";
import { clipOf, isInside } from "../player/clip.js";
import { playerVideo } from "./watch.js";

const FULL_WIDTH = "full";

/** @param {HTMLElement} section @param {AbortSignal} signal */
export function startShareOptions(section, signal) {
  const form = section.querySelector("form");
  if (!form) return;
  form.hidden = false;
  updateAddresses(form, null);
  form.addEventListener("submit", (event) => event.preventDefault(), { signal });
  form.addEventListener("input", (event) => updateAddresses(form, event.target), { signal });
  const panel = section.closest("details");
  // The open panel may be below the window.
  const scrollIntoView = () => panel?.open && panel.scrollIntoView({ block: "nearest" });
  panel?.addEventListener("toggle", scrollIntoView, { signal });
}

/** @param {HTMLFormElement} form @param {EventTarget | null} changed */
function updateAddresses(form, changed) {
  const time = form.elements.namedItem("time");
  const starts = form.elements.namedItem("starts");
  if (!(time instanceof HTMLInputElement) || !(starts instanceof HTMLInputElement)) return;
  const video = playerVideo();
  if (changed === starts && starts.checked)
    time.value = formatClock(Math.floor(video?.currentTime ?? 0));
  if (changed === time) starts.checked = true;
  const typed_s = parseStartTime_s(time.value);
  const clip = video && clipOf(video);
  // The player may not have loaded the stream yet.
  const film_s = Number(video?.dataset.duration);
  const isWithinVideo = typed_s !== null && (clip ? isInside(clip, typed_s) : !(typed_s >= film_s));
  time.setAttribute("aria-invalid", String(starts.checked && !isWithinVideo));
  const start_s = starts.checked && isWithinVideo ? Math.floor(typed_s) : 0;
  setValue("page-address", (address) => {
    const separator = address.includes("?") ? "&" : "?";
    return start_s ? `${address}${separator}t=${start_s}` : address;
  });
  setValue("embed-code", (code) => embedCode(code, form, start_s));
}

/**
 * Set the value of a field, derived from its default: the value without options.
 * @param {string} id @param {(defaultValue: string) => string} derive
 */
export function setValue(id, derive) {
  const field = document.getElementById(id);
  if (field instanceof HTMLInputElement) field.value = derive(field.defaultValue);
}

/** @param {string} code @param {HTMLFormElement} form @param {number} start_s */
function embedCode(code, form, start_s) {
  const chosen = new FormData(form);
  // Browsers allow autoplay without sound only.
  const isMuted = chosen.has("autoplay");
  const size = String(chosen.get("size") ?? "");
  if (!start_s && !isMuted && !size) return code;
  const frame = parseFrame(code);
  if (!frame) return code;
  const address = new URL(frame.src);
  if (start_s) address.searchParams.set("t", String(start_s));
  for (const name of isMuted ? ["autoplay", "muted"] : []) address.searchParams.set(name, "1");
  frame.setAttribute("src", String(address));
  const { width, height } = frame;
  if (size === FULL_WIDTH) {
    frame.removeAttribute("width");
    frame.removeAttribute("height");
    frame.setAttribute("style", `width: 100%; aspect-ratio: ${width} / ${height}`);
  } else if (size) {
    frame.width = size;
    frame.height = String(Math.round((Number(size) * Number(height)) / Number(width)));
  }
  return frame.outerHTML;
}

/** Return the frame of an embed code. @param {string} code */
export function parseFrame(code) {
  return new DOMParser().parseFromString(code, "text/html").querySelector("iframe");
}
