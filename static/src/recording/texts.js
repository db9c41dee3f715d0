/** Texts of the page that records. Pure. */

import { formatNumber, formatPercent, formatSize, formatWhen } from "../format.js";
import { gettext } from "../messages.js";
import { describeTransferError } from "../publishing/failures.js";

/** @typedef {import("./setup.js").Kind} Kind */
/** @typedef {import("./recorder.js").Warning} Warning */

/** @type {Record<import("./recorder.js").WarningKind, string>} */
const WARNINGS = {
  silence: gettext("There is no sound. Is the microphone muted, or another one chosen?"),
  black: gettext("The picture is black. Is the camera covered, or the window minimized?"),
  unplugged: gettext("The microphone was unplugged. Choose another one; the recording goes on."),
  screen_ended: gettext("The screen is no longer shared. The recording goes on without it."),
};
/** A recording has one camera and keeps it. */
const CAMERA_UNPLUGGED = gettext("The camera was unplugged. The recording goes on without it.");

/** Why a recording ends by itself: its last picture is gone, or it can't be continued. */
export const SCREEN_ENDED = gettext(
  "The screen is no longer shared, so the recording has stopped.",
);
export const CAMERA_ENDED = gettext("The camera was unplugged, so the recording has stopped.");
export const DISK_FULL = gettext(
  "There is no space left on this computer, so the recording has stopped.",
);
export const LIMIT_REACHED = gettext(
  "This portal takes no longer recordings, so the recording has stopped.",
);
export const RECORDER_FAILED = gettext("The browser has stopped recording.");
const KEPT = gettext("What was recorded is kept.");
const NOTHING_RECORDED = gettext("Nothing was recorded.");

export const NOT_STARTED = gettext(
  "The recording didn’t start, because no picture came. Choose the screen or camera again.",
);
export const NO_FILES = gettext(
  "The recording didn’t start, because this browser keeps no files for this page. Are you connected, and is this no private window?",
);
export const NOT_WRITTEN = gettext(
  "The end of the recording couldn’t be written to this computer. If its disk is full, make room. Then reload this page to continue with what was recorded.",
);
export const TAKEN = gettext("Another tab continues with this recording.");
export const NO_PICTURE = gettext("Choose a screen or a camera first.");
export const PREPARING = gettext(
  "The video is being prepared. It is cut and published after that.",
);
export const CUTTING = gettext("The video is being cut. It is published after that.");
export const CUT_FAILED = gettext("The video couldn’t be cut, so it isn’t published.");
/** Seconds that are left when the page warns of a full disk. */
const LITTLE_SPACE_S = 15 * 60;

/** @type {Record<Kind, { refused: string, missing: string, busy: string }>} */
const SOURCE_ERRORS = {
  screen: {
    refused: gettext("No screen was chosen, or the browser may not record it."),
    missing: gettext("There is no screen to record."),
    busy: gettext("The screen can’t be recorded. Choose another one."),
  },
  camera: {
    refused: gettext("The camera isn’t allowed. Allow it in the browser’s address bar."),
    missing: gettext("There is no camera."),
    busy: gettext("The camera doesn’t start. Another program may use it."),
  },
  microphone: {
    refused: gettext("The microphone isn’t allowed. Allow it in the browser’s address bar."),
    missing: gettext("There is no microphone."),
    busy: gettext("The microphone doesn’t start. Another program may use it."),
  },
};

/** Return the text of a warning. @param {Pick<Warning, "kind" | "device">} warning */
export function warningText({ kind, device }) {
  return kind === "unplugged" && device === "camera" ? CAMERA_UNPLUGGED : WARNINGS[kind];
}

/**
 * Return the text about a recording that has ended by itself, or with nothing.
 * @param {string} reason empty if the person has ended it @param {boolean} isEmpty
 */
export function endText(reason, isEmpty) {
  if (isEmpty) return [reason, NOTHING_RECORDED].filter(Boolean).join(" ");
  return reason && [reason, KEPT].join(" ");
}

/** Return why a source didn’t open. @param {Kind} kind @param {unknown} error */
export function sourceErrorText(kind, error) {
  const { refused, missing, busy } = SOURCE_ERRORS[kind];
  const name = error instanceof Error ? error.name : "";
  if (name === "NotAllowedError" || name === "AbortError") return refused;
  return name === "NotFoundError" ? missing : busy;
}

/** Return a duration in its largest unit. @param {number} duration_s */
function briefDuration(duration_s) {
  const seconds = Math.max(1, Math.round(duration_s));
  if (seconds < 60) return gettext("%(seconds)s s", { seconds });
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return gettext("%(minutes)s min", { minutes });
  const hours = formatNumber(Math.round(minutes / 6) / 10);
  return gettext("%(hours)s h", { hours });
}

/**
 * Progress of a recording’s upload. `duration_s` is what was recorded.
 * @typedef {{ size_bytes: number, stored_bytes: number, sent_bytes: number, duration_s: number,
 *   trouble: Error | null }} Progress
 */

/** Return the state of the upload during the recording. @param {Progress} progress */
export function meanwhileText({ size_bytes, stored_bytes, duration_s, trouble }) {
  if (!trouble) return gettext("Uploaded while you record");
  const share = size_bytes ? 1 - stored_bytes / size_bytes : 1;
  // Translators: recorded minutes that can't be uploaded now.
  const kept = gettext("Kept on this computer: %(duration)s", {
    duration: briefDuration(share * duration_s),
  });
  return [kept, ...describeTransferError(trouble)].join(". ");
}

/** Return the state of the upload after the recording. @param {Progress} progress */
export function sendingText({ size_bytes, sent_bytes, trouble }) {
  if (!trouble) {
    const percent = formatPercent(Math.floor((sent_bytes / (size_bytes || 1)) * 100) / 100);
    return gettext("Uploading the rest: %(percent)s", { percent });
  }
  const kept = gettext("The recording is kept on this computer.");
  return [kept, describeTransferError(trouble).join(". ")].join(" ");
}

/**
 * Return a warning of little space for recordings in this browser.
 * @param {StorageEstimate} estimate @param {number} rate_bps written bytes per second
 */
export function spaceText({ quota = 0, usage = 0 }, rate_bps) {
  const left_s = (quota - usage) / Math.max(rate_bps, 1);
  if (!quota || !rate_bps || left_s > LITTLE_SPACE_S) return "";
  return gettext("Space on this computer is running out: it lasts for about %(duration)s.", {
    duration: briefDuration(left_s),
  });
}

/** Return the title of a recording until it gets another. @param {number} started_at */
export function titleOf(started_at) {
  const { date, time } = formatWhen(started_at);
  return gettext("Recording of %(date)s, %(time)s", { date, time });
}

/**
 * Return the facts about an unfinished recording.
 * @param {import("./recovery.js").Unfinished} unfinished
 */
export function unfinishedText({ saved, file }) {
  const size = formatSize(file.size);
  return saved.duration_s ? [briefDuration(saved.duration_s), size].join(" · ") : size;
}

/** @typedef {import("../question.js").Question} Question */

/** @returns {Question} */
export const discardQuestion = () => ({
  title: gettext("Discard this recording?"),
  text: gettext("It is deleted from this computer and from the portal."),
  // Translators: button that deletes a recording.
  yes: gettext("Discard"),
  // Translators: button that keeps a recording.
  no: gettext("Keep"),
});

/** @returns {Question} */
export const startOverQuestion = () => ({
  title: gettext("Start over?"),
  text: gettext("What you have recorded is deleted, and a new recording begins."),
  // Translators: button that deletes a recording and begins another.
  yes: gettext("Start over"),
  // Translators: button that goes on with a recording.
  no: gettext("Go on"),
});
