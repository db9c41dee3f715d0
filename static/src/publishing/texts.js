/** Texts and actions for the state of an upload. Pure. */

import { formatSize, formatTimeLeft, formatWhen } from "../format.js";
import { needsSignIn } from "../people/session.js";
import { canTryAgain, describeTransferError } from "./failures.js";
import * as is from "./selectors.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {"pause" | "resume" | "retry" | "cancel" | "remove"} Button */
/**
 * Status of an upload. Its line shows `figure` and `rest`, with a bar if `share` is given: from 0
 * to 1, or null before the first progress. `trouble` is an error with its remedy, and a link to
 * sign in if that is the remedy. `unfinished` asks for the file.
 * @typedef {{ art?: "file" | "good" | "bad", figure: string, rest?: string, share?: number | null,
 *   trouble?: { title: string, text: string, needsSignIn?: boolean }, unfinished?: string,
 *   canReplace?: boolean, buttons: Button[] }} Status
 */

const SMALL_FILES = "small files restart from the beginning";
const WILL_BE_PUBLISHED = "Will be published when the upload finishes";
const NO_PROGRESS = "Waiting for storage to respond…";
/** Time left from which people may leave the page in the meantime. */
const LONG_TRANSFER_S = 20;

/** Return the status of an upload. @param {Upload} upload @returns {Status} */
export function statusOf(upload) {
  if (upload.publishing === "published") return publishedStatus(upload);
  const share = upload.sent_bytes / upload.size_bytes;
  const percent = `${Math.floor(share * 100)}%`;
  switch (upload.phase) {
    case "unfinished": {
      const figure = upload.arrived_bytes ? `Unfinished at ${percent}` : "Unfinished";
      return { figure, share, unfinished: unfinishedText(upload), buttons: ["remove"] };
    }
    case "waiting":
      return { figure: "Waiting for another upload to finish", share, buttons: ["cancel"] };
    case "sending": {
      const figure = share || upload.rate.speed_bps ? percent : "Starting…";
      const buttons = /** @type {Button[]} */ (["pause", "cancel"]);
      return { figure, rest: sendingText(upload), share: share || null, buttons };
    }
    case "paused":
      return {
        figure: `Paused at ${percent}`,
        rest: is.isSentWhole(upload) ? SMALL_FILES : "",
        share,
        buttons: ["resume", "cancel"],
      };
    case "confirming": {
      const figure = "Checking the upload…";
      return { figure, rest: upload.isSilent ? NO_PROGRESS : "", share, buttons: ["cancel"] };
    }
    case "sent": {
      const isReady = !upload.file && !is.faultsOf(upload).length;
      const rest = isReady ? "Ready to publish" : "";
      return { art: "good", figure: "Uploaded", rest, buttons: ["remove"] };
    }
    case "cancelled":
      return { figure: "Cancelled", canReplace: true, buttons: ["retry", "remove"] };
    default:
      return failedStatus(upload);
  }
}

/** @param {Upload} upload @returns {Status} */
function publishedStatus({ processing }) {
  /** @type {Status} */
  const done = { art: "good", figure: "Published", buttons: [] };
  if (!processing) return done;
  const { stage, percent, queuePosition, failure } = processing;
  if (stage === "ready") return { ...done, figure: "Ready to watch" };
  if (stage === "failed") {
    return { ...done, art: "bad", figure: "Couldn’t be processed", rest: failure };
  }
  const place = queuePosition && queuePosition > 1 ? `: position ${queuePosition}` : "";
  const waiting = `In queue${place}`;
  if (stage === "waiting") return { ...done, rest: waiting };
  const figure = `Processing ${Math.floor(percent)}%`;
  return { ...done, figure, share: percent / 100 };
}

/** @param {Upload} upload */
function unfinishedText(upload) {
  const { arrived_bytes, saved_at } = upload;
  const start = `Started ${formatWhen(saved_at)}`;
  if (is.isSentWhole(upload)) {
    return `${start}. Choose the same file again: ${SMALL_FILES}.`;
  }
  if (!arrived_bytes) return `${start}. Choose the same file to continue.`;
  return `${start}; ${formatSize(arrived_bytes)} uploaded. Choose the same file to continue.`;
}

/** @param {Upload} upload */
function sendingText(upload) {
  const { failure, isSilent, rate } = upload;
  if (failure) return `${describeTransferError(failure)[0]} · Retrying…`;
  if (isSilent) return NO_PROGRESS;
  if (!rate.speed_bps) return "";
  const left_s = leftOf(upload) / rate.speed_bps;
  const words = `${formatSize(rate.speed_bps)}/s · ${formatTimeLeft(left_s)}`;
  const needsWarning = is.isSentWhole(upload) && left_s > LONG_TRANSFER_S;
  return needsWarning ? `${words} · restarts if you reload` : words;
}

/** Return the status of a failed or refused upload. @param {Upload} upload @returns {Status} */
function failedStatus({ failure, inspection, file }) {
  const refusal = inspection?.findings.find(({ weight }) => weight === "refuse");
  const bad = { art: /** @type {const} */ ("bad"), canReplace: true };
  if (refusal) {
    return { ...bad, figure: "Can’t be published", trouble: refusal, buttons: ["remove"] };
  }
  const [title, text] = describeTransferError(failure);
  const shouldRetry = file && canTryAgain(failure);
  const buttons = /** @type {Button[]} */ (shouldRetry ? ["retry", "remove"] : ["remove"]);
  const trouble = { title, text, needsSignIn: needsSignIn(failure) };
  return { ...bad, figure: "Not uploaded", trouble, buttons };
}

/**
 * Return the remark about publishing in an upload's line.
 * @param {Upload} upload @returns {{ text: string, isBad?: boolean }}
 */
export function noteOf(upload) {
  const { publishing, publishError, faults } = upload;
  if (publishing === "publishing") return { text: "Publishing…" };
  if (publishing === "requested") {
    if (is.isInFlight(upload)) return { text: WILL_BE_PUBLISHED };
    return { text: "Fix this to publish", isBad: true };
  }
  if (publishError) return { text: "Not published yet", isBad: true };
  const hasFormFault = faults.some(({ pointer }) => pointer !== "/file");
  return hasFormFault ? { text: "Some details are missing", isBad: true } : { text: "" };
}

/**
 * Return the visibility in words, if it is not the default.
 * @param {Upload} upload @param {string} defaultVisibility
 */
export const visibilityText = ({ details: { visibility } }, defaultVisibility) =>
  visibility === defaultVisibility ? "" : visibility.charAt(0).toUpperCase() + visibility.slice(1);

/** @param {Upload[]} uploads */
const formatVideoCount = ({ length }) => (length === 1 ? "1 video" : `${length} videos`);

/** @param {Upload[]} applied */
export const appliedText = (applied) => `Applied to ${formatVideoCount(applied)}`;

/**
 * Return the question before an action that deletes uploaded data, or shows a video to more people.
 * @param {State} state @param {string} action @param {number} number of the upload
 * @returns {{ title: string, text: string, yes: string, no: string } | null} null if none is needed
 */
export function questionOf(state, action, number) {
  const upload = is.uploadOf(state, number);
  if (action === "remove" && upload && is.holdsSent(upload)) {
    return {
      title: `Remove “${upload.fileName}”?`,
      text: `${formatSize(upload.sent_bytes)} that you have uploaded will be deleted.`,
      yes: "Remove",
      no: "Cancel",
    };
  }
  const loosened = action === "copy" ? is.loosenedBy(state, number) : [];
  if (!loosened.length) return null;
  const { visibility } = is.sharedOf(state, number);
  const videos = loosened.length > 1 ? formatVideoCount(loosened) : `“${loosened[0]?.fileName}”`;
  return {
    title: `Make ${videos} ${visibility}?`,
    text: "More people will be able to watch. Categories and tags are applied either way.",
    yes: `Make ${visibility}`,
    no: "Keep current visibility",
  };
}

/**
 * Return the state of the button that publishes, and the text beside it.
 * @param {State} state
 * @returns {{ isHidden: boolean, label: string, isBusy: boolean, hint: string,
 *   isIncomplete?: boolean }} `isIncomplete` if every upload lacks details
 */
export function submitOf({ uploads }) {
  const open = uploads.filter(is.isPublishable);
  const left = open.filter(({ publishing }) => publishing === "");
  const label = left.length > 1 ? `Publish ${left.length} videos` : "Publish";
  if (left.length) {
    const incomplete = left.filter((upload) => is.faultsOf(upload).length);
    const isIncomplete = incomplete.length === left.length;
    return {
      isHidden: false,
      label,
      isBusy: false,
      hint: missingDetailsText(incomplete),
      isIncomplete,
    };
  }
  const isWaiting = open.some(({ publishing }) => publishing === "requested");
  const hint = isWaiting ? `${WILL_BE_PUBLISHED}. Keep this page open.` : "";
  const isHidden = open.length === 0;
  return { isHidden, label: isWaiting ? "Waiting…" : "Publishing…", isBusy: true, hint };
}

/** @type {Record<string, string>} */
const MISSING_NAMES = { "/title": "a title", "/categoryIds": "a category" };

/** Return the names of missing details. @param {Upload[]} incomplete */
function missingDetailsText(incomplete) {
  if (!incomplete.length) return "";
  const missing = new Set(
    incomplete.flatMap(is.faultsOf).map(({ pointer }) => MISSING_NAMES[pointer]),
  );
  const verb = incomplete.length === 1 ? "needs" : "need";
  return `${formatVideoCount(incomplete)} ${verb} ${[...missing].join(" or ")}`;
}

/** Return the bytes that are still to be sent. @param {Upload} upload */
const leftOf = ({ size_bytes, sent_bytes, rate }) =>
  size_bytes - Math.max(sent_bytes, rate.sent_bytes);

/**
 * Return the progress of all files of this visit: `share` is 1 only when everything is sent,
 * `speed_bps` is the total rate, 0 while unknown.
 * @param {Upload[]} uploads
 */
export function overallOf(uploads) {
  const counted = uploads.filter((upload) => upload.file && is.isCounted(upload));
  /** @param {(upload: Upload) => number} of */
  const sum = (of) => counted.reduce((total, upload) => total + of(upload), 0);
  const sent_bytes = sum((upload) => upload.sent_bytes);
  const total_bytes = sum((upload) => upload.size_bytes);
  const isMoving = (/** @type {Upload} */ upload) => is.isRunning(upload) && !is.isStalled(upload);
  const speed_bps = sum((upload) => (isMoving(upload) && upload.rate.speed_bps) || 0);
  const share = total_bytes ? sent_bytes / total_bytes : 0;
  const bytes = { sent_bytes, total_bytes, left_bytes: sum(leftOf), speed_bps };
  return { count: counted.length, share, ...bytes };
}

/** Return the summary of several files. @param {State} state */
export function batchOf({ uploads }) {
  const counted = uploads.filter(is.isCounted);
  const overall = overallOf(uploads);
  // A file that an earlier visit sent adds no bytes, but its upload counts as sent.
  const isSent = counted.every(({ phase }) => phase === "sent");
  const share = isSent ? 1 : overall.share;
  const published = counted.filter((upload) => !is.isUnpublished(upload)).length;
  const sent = counted.filter(({ phase }) => phase === "sent").length;
  let count = `${sent} of ${counted.length} uploaded`;
  if (published) count = `${published} of ${counted.length} published`;
  if (published === counted.length) count = publishedWords(counted);
  const { sent_bytes, total_bytes, left_bytes, speed_bps } = overall;
  const parts = ["", `${formatSize(sent_bytes)} of ${formatSize(total_bytes)}`];
  const running = counted.filter(is.isRunning);
  const isOffline = running.length > 0 && running.every(is.isStalled);
  if (isOffline) parts.push("No connection, retrying…");
  else if (speed_bps) parts.push(formatTimeLeft(left_bytes / speed_bps));
  return {
    isHidden: counted.length < 2,
    share,
    percent: share < 1 ? `${Math.floor(share * 100)}%` : "",
    count,
    // The text continues the number of files.
    rest: sent_bytes < total_bytes ? parts.join(" · ") : "",
  };
}

/** Return what became of videos that are all published. @param {Upload[]} uploads */
function publishedWords(uploads) {
  const failed = uploads.filter(({ processing }) => processing?.stage === "failed").length;
  const good = uploads.length - failed;
  const words = `${good || "No"} ${good === 1 ? "video" : "videos"} published`;
  return failed ? `${words}, ${failed} couldn’t be processed.` : `${words}.`;
}

/**
 * Return the announcements of new phases and findings, and of each quarter of the total progress.
 * @param {State} before @param {State} after @returns {string[]}
 */
export function announcementsOf(before, after) {
  const each = after.uploads.flatMap((upload) => {
    const { number, file, fileName, phase, inspection, video, processing } = upload;
    const earlier = is.uploadOf(before, number);
    const announcements = [];
    if (file && earlier?.phase !== phase) {
      if (phase === "paused") announcements.push(`${fileName} is paused.`);
      if (phase === "sent") announcements.push(`${fileName} is uploaded.`);
    }
    if (inspection?.findings.length && earlier?.inspection !== inspection) {
      announcements.push(
        `${fileName}: ${inspection.findings.map(({ title }) => `${title}.`).join(" ")}`,
      );
    }
    if (processing && earlier?.processing?.stage !== processing.stage) {
      const { stage, failure } = processing;
      if (stage === "ready") announcements.push(`“${video?.title}” is ready to watch.`);
      if (stage === "failed")
        announcements.push(`“${video?.title}” couldn’t be processed: ${failure}`);
    }
    return announcements;
  });
  const { share, count } = overallOf(after.uploads);
  const quarter = Math.floor(share * 4) * 25;
  if (quarter <= Math.floor(overallOf(before.uploads).share * 4) * 25) return each;
  if (quarter < 100) return [...each, `${quarter}% uploaded.`];
  const files = count > 2 ? `All ${count}` : "Both";
  return count < 2 ? each : [...each, `${files} files are uploaded.`];
}
