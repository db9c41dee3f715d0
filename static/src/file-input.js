/** Files that are chosen in a field, or dropped anywhere on the page. */

/** @param {HTMLInputElement} input @param {(files: File[]) => void} onFiles */
export function takeFiles(input, onFiles) {
  const files = [...(input.files ?? [])];
  // Emptied, so that choosing the same file again counts as a change.
  input.value = "";
  if (files.length) onFiles(files);
}

/**
 * A near miss of the drop zone must not make the browser leave the page to open the file.
 * @param {HTMLElement} zone
 * @param {(files: File[]) => void} onFiles
 * @param {AbortSignal} signal
 */
export function acceptDrops(zone, onFiles, signal) {
  /** @param {DragEvent} event */
  const follow = (event) => {
    if (event.type === "dragleave") {
      if (!event.relatedTarget) zone.classList.remove("drop--over");
      return;
    }
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    zone.classList.toggle("drop--over", event.type === "dragover");
    const files = event.type === "drop" ? [...event.dataTransfer.files] : [];
    if (files.length) onFiles(files);
  };
  for (const type of /** @type {const} */ (["dragover", "dragleave", "drop"])) {
    window.addEventListener(type, follow, { signal });
  }
}
