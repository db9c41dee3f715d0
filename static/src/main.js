import "htmx.org";
import { newsBehaviour } from "./library/live.js";
import { searchBehaviour } from "./library/search.js";
import { onDemand, refresh } from "./lifecycle.js";
import { localSize, localTime } from "./local.js";
import { pollPolitely } from "./polling.js";
import { remainingBehaviour } from "./remaining.js";
import { retryBehaviour } from "./retry-button.js";
import { statusBehaviour } from "./status.js";

const behaviours = [
  localSize,
  localTime,
  remainingBehaviour,
  retryBehaviour,
  statusBehaviour,
  newsBehaviour,
  searchBehaviour,
  onDemand("[data-previews]", async () => (await import("./library/preview.js")).startPreviews),
  onDemand("video[data-player]", async () => (await import("./player/player.js")).startPlayer),
  onDemand("[data-edit-form]", async () => (await import("./detail/edit-form.js")).editForm),
  onDemand("[data-revisited]", async () => (await import("./detail/revisits.js")).revisits),
  onDemand("[data-access]", async () => (await import("./detail/access.js")).accessPanel),
  onDemand("[data-poster]", async () => (await import("./detail/poster.js")).posterTool),
  onDemand("[data-opens]", async () => (await import("./detail/dialog.js")).dialogLink),
  onDemand("[data-seeks]", async () => (await import("./detail/seek.js")).seekLinks),
  onDemand("[data-share]", async () => (await import("./detail/share.js")).shareOptions),
  onDemand("[data-api]", async () => (await import("./unfold.js")).unfoldTarget),
  onDemand("[data-copy]", async () => (await import("./copy.js")).copyButton),
  onDemand("[data-multi-select]", async () => (await import("./multi-select.js")).multiSelect),
  onDemand("[data-copies]", async () => (await import("./copy.js")).copyLink),
  onDemand("[data-menu]", async () => (await import("./menu.js")).menu),
  onDemand("[data-bulk-form]", async () => (await import("./library/bulk-form.js")).bulkForm),
  onDemand("[data-selection]", async () => (await import("./library/selection.js")).selection),
  onDemand("[data-toast]", async () => (await import("./library/toast.js")).toast),
  onDemand("[data-shows]", async () => (await import("./accounts/show-password.js")).showPassword),
  onDemand(
    "[data-sign-in-again]",
    async () => (await import("./accounts/refusals.js")).followRefusals,
  ),
  onDemand("[data-upload-form]", async () => (await import("./upload/page.js")).startUploadPage),
];

/** @param {ParentNode} root */
export function init(root) {
  refresh(root, behaviours);
}

// htmx sends this for every piece it has swapped in, from that piece.
document.addEventListener("htmx:after:process", (event) => {
  if (event.target instanceof Element) init(event.target);
});
pollPolitely();
init(document);
