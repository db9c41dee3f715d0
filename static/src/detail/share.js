/**
 * The options for sharing a video: its start time, and the size and autoplay of an embedded player.
 * The section is replaced once the video is ready, except for the form with the options.
 */

import { formatClock, parseStartTime_s } from "../format.js";
import { player } from "./watch.js";

const FULL_WIDTH = "full";

/** @param {HTMLElement} section @param {AbortSignal} signal */
export function shareOptions(section, signal) {
  const form = section.querySelector("form");
  if (!form) return;
  form.hidden = false;
  update(form, null);
  form.addEventListener("submit", (event) => event.preventDefault(), { signal });
  form.addEventListener("input", (event) => update(form, event.target), { signal });
  const panel = section.closest("details");
  // The open panel may be below the window.
  const reveal = () => panel?.open && panel.scrollIntoView({ block: "nearest" });
  panel?.addEventListener("toggle", reveal, { signal });
}

/** @param {HTMLFormElement} form @param {EventTarget | null} changed */
function update(form, changed) {
  const time = form.elements.namedItem("time");
  const starts = form.elements.namedItem("starts");
  if (!(time instanceof HTMLInputElement) || !(starts instanceof HTMLInputElement)) return;
  const { currentTime = 0, duration = NaN } = player() ?? {};
  if (changed === starts && starts.checked) time.value = formatClock(Math.floor(currentTime));
  if (changed === time) starts.checked = true;
  const start_s = parseStartTime_s(time.value);
  const isInIt = start_s !== null && !(start_s >= duration);
  time.setAttribute("aria-invalid", String(starts.checked && !isInIt));
  const wanted_s = starts.checked && isInIt ? Math.floor(start_s) : 0;
  write("page-address", (address) => (wanted_s ? `${address}?t=${wanted_s}` : address));
  write("embed-code", (code) => embedCode(code, form, wanted_s));
}

/**
 * @param {string} id of a field whose default is the value without options
 * @param {(plain: string) => string} make
 */
function write(id, make) {
  const field = document.getElementById(id);
  if (field instanceof HTMLInputElement) field.value = make(field.defaultValue);
}

/** @param {string} code @param {HTMLFormElement} form @param {number} start_s */
function embedCode(code, form, start_s) {
  const chosen = new FormData(form);
  // Browsers allow autoplay without sound only.
  const isMuted = chosen.has("autoplay");
  const size = String(chosen.get("size") ?? "");
  if (!start_s && !isMuted && !size) return code;
  const frame = new DOMParser().parseFromString(code, "text/html").querySelector("iframe");
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
