import "htmx.org";
import { contextOf } from "./dom.js";
import { readyAnnouncement, reloadIfMoved, searchBehaviour } from "./library/search.js";
import { lazyBehaviour, refresh } from "./lifecycle.js";
import { localTime } from "./local.js";
import { retryAfterOf_s } from "./requests.js";
import { remainingBehaviour, retryBehaviour, statusBehaviour } from "./status.js";

const behaviours = [
  localTime,
  remainingBehaviour,
  retryBehaviour,
  statusBehaviour,
  readyAnnouncement,
  searchBehaviour,
  lazyBehaviour(
    "[data-previews]",
    async () => (await import("./library/preview.js")).startPreviews,
  ),
  lazyBehaviour("video[data-player]", async () => (await import("./player/player.js")).startPlayer),
  lazyBehaviour(
    "[data-clears-positions]",
    async () => (await import("./player/saved-state.js")).clearPositions,
  ),
  lazyBehaviour(
    "[data-caption-editor]",
    async () => (await import("./captions/editor.js")).startEditor,
  ),
  lazyBehaviour(
    "[data-transcript]",
    async () => (await import("./captions/transcript.js")).startTranscript,
  ),
  lazyBehaviour("[data-edit-form]", async () => (await import("./detail/forms.js")).startEditForm),
  lazyBehaviour("[data-save-bar]", async () => (await import("./detail/save-bar.js")).startSaveBar),
  lazyBehaviour(
    "[data-revisited]",
    async () => (await import("./detail/watch.js")).recheckOnReturn,
  ),
  lazyBehaviour("[data-access]", async () => (await import("./detail/forms.js")).startAccessPanel),
  lazyBehaviour("[data-poster]", async () => (await import("./detail/poster.js")).startPosterTool),
  lazyBehaviour(
    "[data-replacement]",
    async () => (await import("./detail/replacement.js")).startReplacement,
  ),
  lazyBehaviour("[data-cuts]", async () => (await import("./cuts/cuts.js")).startCutsEditor),
  lazyBehaviour("[data-opens]", async () => (await import("./disclosure.js")).startDialogLink),
  lazyBehaviour("[data-seeks]", async () => (await import("./detail/watch.js")).startSeekLinks),
  lazyBehaviour("[data-share]", async () => (await import("./detail/share.js")).startShareOptions),
  lazyBehaviour("[data-clip-panel]", async () => (await import("./detail/clip.js")).startClipPanel),
  lazyBehaviour("[data-copy]", async () => (await import("./copy.js")).startCopyButton),
  lazyBehaviour(
    "[data-multi-select]",
    async () => (await import("./multi-select.js")).startMultiSelect,
  ),
  lazyBehaviour("[data-copies]", async () => (await import("./copy.js")).startCopyLink),
  lazyBehaviour("[data-menu]", async () => (await import("./disclosure.js")).startMenu),
  lazyBehaviour("[data-bulk-form]", async () => (await import("./library/table.js")).startBulkForm),
  lazyBehaviour(
    "[data-selection]",
    async () => (await import("./library/table.js")).startSelection,
  ),
  lazyBehaviour("[data-toast]", async () => (await import("./library/table.js")).startToast),
  lazyBehaviour(
    "[data-shows]",
    async () => (await import("./accounts/sign-in-again.js")).startPasswordButton,
  ),
  lazyBehaviour(
    "[data-sign-in-again]",
    async () => (await import("./accounts/sign-in-again.js")).startSignInPrompts,
  ),
  lazyBehaviour(
    "[data-upload-form]",
    async () => (await import("./upload/page.js")).startUploadPage,
  ),
];

const BUSY_STATUSES = new Set([429, 503]);
const LONGEST_PAUSE_S = 60;
/** Range of the random delay that keeps refused pages from polling again together. */
const SPREAD_S = 1;

let pollsPausedUntil_ms = 0;

/**
 * Cancel polls for the Retry-After of a busy portal's response (429 or 503). Requests that a person
 * makes are still sent at once.
 */
function pausePollsWhileBusy() {
  document.addEventListener("htmx:before:request", (event) => {
    const isPoll = contextOf(event).sourceEvent?.type === "every";
    if (isPoll && performance.now() < pollsPausedUntil_ms) event.preventDefault();
  });
  document.addEventListener("htmx:after:request", (event) => {
    const { status, headers } = contextOf(event).response;
    if (!BUSY_STATUSES.has(status)) return;
    const pause_s = Math.min(retryAfterOf_s(headers), LONGEST_PAUSE_S) + Math.random() * SPREAD_S;
    pollsPausedUntil_ms = performance.now() + pause_s * 1000;
  });
}

// htmx sends this event from every swapped element.
document.addEventListener("htmx:after:process", (event) => {
  if (event.target instanceof Element) refresh(event.target, behaviours);
});
pausePollsWhileBusy();
reloadIfMoved();
refresh(document, behaviours);
