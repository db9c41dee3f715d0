/** A link that asks in a dialog of its page what else a page of its own would ask. */

/** @type {import("../lifecycle.js").Start} */
export function dialogLink(link, signal) {
  const dialog = document.getElementById(link.dataset.opens ?? "");
  if (!(dialog instanceof HTMLDialogElement)) return;
  link.addEventListener(
    "click",
    (event) => {
      // A new tab or window was asked for: that is the page's job.
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      dialog.showModal();
    },
    { signal },
  );
  // Outside of its content, which covers it, there's only the backdrop.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close(), {
    signal,
  });
}
