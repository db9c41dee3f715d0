/** Choosing files: the file input, and dropping files on it or elsewhere on the page. */

import { element } from "./dom.js";

/**
 * @param {HTMLElement} zone with a file input in it
 * @param {(files: File[]) => void} onFiles
 * @param {AbortSignal} signal
 */
export function watchDropZone(zone, onFiles, signal) {
  const input = element(zone, "input[type=file]");
  if (!(input instanceof HTMLInputElement)) return;

  const take = () => {
    const files = [...(input.files ?? [])];
    // Emptied, so that choosing the same file again counts as a change.
    input.value = "";
    if (files.length) onFiles(files);
  };
  input.addEventListener("change", take, { signal });
  // Someone may have been faster than this script.
  take();

  /** @param {DragEvent} event */
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;
  // A near miss must not make the browser leave the page to open the file.
  window.addEventListener(
    "dragover",
    (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      zone.classList.add("drop--over");
    },
    { signal },
  );
  window.addEventListener(
    "dragleave",
    (event) => {
      if (!event.relatedTarget) zone.classList.remove("drop--over");
    },
    { signal },
  );
  window.addEventListener(
    "drop",
    (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      zone.classList.remove("drop--over");
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length) onFiles(files);
    },
    { signal },
  );
}
