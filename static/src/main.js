import "htmx.org";
import { contextOf } from "./dom.js";
import { newsBehaviour, searchBehaviour } from "./library/search.js";
import { onDemand, refresh } from "./lifecycle.js";
import { localTime } from "./local.js";
import { remainingBehaviour, retryBehaviour, statusBehaviour } from "./status.js";

const behaviours = [
  localTime,
  remainingBehaviour,
  retryBehaviour,
  statusBehaviour,
  newsBehaviour,
  searchBehaviour,
  onDemand("[data-previews]", async () => (await import("./library/preview.js")).startPreviews),
  onDemand("video[data-player]", async () => (await import("./player/player.js")).startPlayer),
  onDemand("[data-caption-editor]", async () => (await import("./captions/editor.js")).startEditor),
  onDemand(
    "[data-transcript]",
    async () => (await import("./captions/transcript.js")).startTranscript,
  ),
  onDemand("[data-edit-form]", async () => (await import("./detail/forms.js")).editForm),
  onDemand("[data-save-bar]", async () => (await import("./detail/save-bar.js")).saveBar),
  onDemand("[data-revisited]", async () => (await import("./detail/watch.js")).revisits),
  onDemand("[data-access]", async () => (await import("./detail/forms.js")).accessPanel),
  onDemand("[data-poster]", async () => (await import("./detail/poster.js")).posterTool),
  onDemand("[data-opens]", async () => (await import("./disclosure.js")).dialogLink),
  onDemand("[data-seeks]", async () => (await import("./detail/watch.js")).seekLinks),
  onDemand("[data-share]", async () => (await import("./detail/share.js")).shareOptions),
  onDemand("[data-copy]", async () => (await import("./copy.js")).copyButton),
  onDemand("[data-multi-select]", async () => (await import("./multi-select.js")).multiSelect),
  onDemand("[data-copies]", async () => (await import("./copy.js")).copyLink),
  onDemand("[data-menu]", async () => (await import("./disclosure.js")).menu),
  onDemand("[data-bulk-form]", async () => (await import("./library/table.js")).bulkForm),
  onDemand("[data-selection]", async () => (await import("./library/table.js")).selection),
  onDemand("[data-toast]", async () => (await import("./library/table.js")).toast),
  onDemand("[data-shows]", async () => (await import("./accounts/sign-in-again.js")).showPassword),
  onDemand(
    "[data-sign-in-again]",
    async () => (await import("./accounts/sign-in-again.js")).followRefusals,
  ),
  onDemand("[data-upload-form]", async () => (await import("./upload/page.js")).startUploadPage),
];

const BUSY_STATUSES = new Set([429, 503]);
const LONGEST_PAUSE_S = 60;
/** Spread of retries, so that refused pages do not return together. */
const SPREAD_S = 1;

let paused_until = 0;

/**
 * Let polls wait as long as a busy portal asks: after 429 or 503 for its Retry-After. Requests of a
 * person are still sent at once.
 */
function pollPolitely() {
  document.addEventListener("htmx:before:request", (event) => {
    const isPoll = contextOf(event).sourceEvent?.type === "every";
    if (isPoll && performance.now() < paused_until) event.preventDefault();
  });
  document.addEventListener("htmx:after:request", (event) => {
    const { status, headers } = contextOf(event).response;
    if (!BUSY_STATUSES.has(status)) return;
    const asked_s = Number.parseInt(headers.get("Retry-After") ?? "", 10) || 0;
    const pause_s = Math.min(asked_s, LONGEST_PAUSE_S) + Math.random() * SPREAD_S;
    paused_until = performance.now() + pause_s * 1000;
  });
}

// htmx sends this event from every swapped element.
document.addEventListener("htmx:after:process", (event) => {
  if (event.target instanceof Element) refresh(event.target, behaviours);
});
pollPolitely();
refresh(document, behaviours);
