/** A link that asks in a dialog of its page what else a page of its own would ask. */

import { closeByBackdrop } from "../backdrop.js";

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
  closeByBackdrop(dialog, signal);
}
