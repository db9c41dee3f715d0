/** Choosing a file: the file input, and dropping a file on it or elsewhere on the page. */

import { element } from "./dom.js";

/**
 * @param {HTMLElement} zone with a file input in it
 * @param {(file: File) => void} onFile
 * @param {AbortSignal} signal
 */
export function watchDropZone(zone, onFile, signal) {
  const input = element(zone, "input[type=file]");
  if (!(input instanceof HTMLInputElement)) return;

  input.addEventListener(
    "change",
    () => {
      const file = input.files?.[0];
      // Emptied, so that choosing the same file again counts as a change.
      if (file) onFile(file);
      input.value = "";
    },
    { signal },
  );

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
      const file = event.dataTransfer?.files[0];
      if (file && zone.offsetParent) onFile(file);
    },
    { signal },
  );
}
