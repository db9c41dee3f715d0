import "htmx.org";
import { contextOf } from "./dom.js";
import { readyAnnouncement, reloadIfMoved, searchBehaviour } from "./library/search.js";
import { lazyBehaviour, refresh } from "./lifecycle.js";
import { localTime } from "./local.js";
import { language } from "./messages.js";
import { LANGUAGE_HEADER } from "./requests.js";
import { retryAfterOf_s } from "./retry-after.js";
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
    "library/preview",
    () => import("./library/preview.js"),
    "startPreviews",
  ),
  lazyBehaviour(
    "video[data-player]",
    "player/player",
    () => import("./player/player.js"),
    "startPlayer",
  ),
  lazyBehaviour(
    "[data-clears-positions]",
    "player/saved-state",
    () => import("./player/saved-state.js"),
    "clearPositions",
  ),
  lazyBehaviour(
    "[data-caption-editor]",
    "captions/editor",
    () => import("./captions/editor.js"),
    "startEditor",
  ),
  lazyBehaviour(
    "[data-transcript]",
    "captions/transcript",
    () => import("./captions/transcript.js"),
    "startTranscript",
  ),
  lazyBehaviour(
    "[data-edit-form]",
    "editing/forms",
    () => import("./editing/forms.js"),
    "startEditForm",
  ),
  lazyBehaviour(
    "[data-save-bar]",
    "editing/save-bar",
    () => import("./editing/save-bar.js"),
    "startSaveBar",
  ),
  lazyBehaviour(
    "[data-revisited]",
    "watching/watch",
    () => import("./watching/watch.js"),
    "recheckOnReturn",
  ),
  lazyBehaviour(
    "[data-access]",
    "editing/forms",
    () => import("./editing/forms.js"),
    "startFormPanel",
  ),
  lazyBehaviour(
    "[data-schedule]",
    "schedule/schedule",
    () => import("./schedule/schedule.js"),
    "startSchedule",
  ),
  lazyBehaviour(
    "[data-poster]",
    "posters/poster",
    () => import("./posters/poster.js"),
    "startPosterTool",
  ),
  lazyBehaviour(
    "[data-replacement]",
    "replacement/replacement",
    () => import("./replacement/replacement.js"),
    "startReplacement",
  ),
  lazyBehaviour(
    "[data-hand-in]",
    "hand_in/hand-in",
    () => import("./hand_in/hand-in.js"),
    "startHandIn",
  ),
  lazyBehaviour("[data-cuts]", "cuts/cuts", () => import("./cuts/cuts.js"), "startCutsEditor"),
  lazyBehaviour("[data-opens]", "disclosure", () => import("./disclosure.js"), "startDialogLink"),
  lazyBehaviour(
    "[data-series-order]",
    "series/order",
    () => import("./series/order.js"),
    "startOrder",
  ),
  lazyBehaviour(
    "[data-up-next]",
    "series/up-next",
    () => import("./series/up-next.js"),
    "startUpNext",
  ),
  lazyBehaviour(
    "[data-seeks]",
    "watching/watch",
    () => import("./watching/watch.js"),
    "startSeekLinks",
  ),
  lazyBehaviour(
    "[data-share]",
    "watching/share",
    () => import("./watching/share.js"),
    "startShareOptions",
  ),
  lazyBehaviour(
    "[data-clip-panel]",
    "watching/clip",
    () => import("./watching/clip.js"),
    "startClipPanel",
  ),
  lazyBehaviour("[data-copy]", "copy", () => import("./copy.js"), "startCopyButton"),
  lazyBehaviour(
    "[data-multi-select]",
    "multi-select",
    () => import("./multi-select.js"),
    "startMultiSelect",
  ),
  lazyBehaviour("[data-copies]", "copy", () => import("./copy.js"), "startCopyLink"),
  lazyBehaviour("[data-menu]", "disclosure", () => import("./disclosure.js"), "startMenu"),
  lazyBehaviour(
    "[data-bulk-form]",
    "library/table",
    () => import("./library/table.js"),
    "startBulkForm",
  ),
  lazyBehaviour(
    "[data-selection]",
    "library/table",
    () => import("./library/table.js"),
    "startSelection",
  ),
  lazyBehaviour("[data-toast]", "library/table", () => import("./library/table.js"), "startToast"),
  lazyBehaviour(
    "[data-shows]",
    "people/sign-in-again",
    () => import("./people/sign-in-again.js"),
    "startPasswordButton",
  ),
  lazyBehaviour(
    "[data-sign-in-again]",
    "people/sign-in-again",
    () => import("./people/sign-in-again.js"),
    "startSignInPrompts",
  ),
  lazyBehaviour(
    "[data-upload-form]",
    "publishing/page",
    () => import("./publishing/page.js"),
    "startUploadPage",
  ),
  lazyBehaviour(
    "[data-record]",
    "recording/record",
    () => import("./recording/record.js"),
    "startRecordPage",
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

/** Have parts of a page arrive in the page's language. */
function sendLanguage() {
  document.addEventListener("htmx:config:request", (event) => {
    contextOf(event).request.headers[LANGUAGE_HEADER] = language;
  });
}

// htmx sends this event from every swapped element.
document.addEventListener("htmx:after:process", (event) => {
  if (event.target instanceof Element) refresh(event.target, behaviours);
});
pausePollsWhileBusy();
sendLanguage();
reloadIfMoved();
refresh(document, behaviours);
