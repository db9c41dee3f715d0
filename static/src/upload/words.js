/** What is shown of the state: where an upload stands, in words, and what can be done. Pure. */

import { SOMEONE_ELSE, SomeoneElse } from "../accounts/sign-in-again.js";
import { formatSize, formatTimeLeft, formatWhen } from "../format.js";
import { isSignedOut, NoAnswer, needsSignIn, Refused, SIGNED_OUT } from "../requests.js";
import { NotPublished, quotaTrouble } from "./publication.js";
import { TransferFailed } from "./retry.js";
import * as is from "./selectors.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {"pause" | "resume" | "retry" | "cancel" | "remove"} Button */
/**
 * Where an upload stands. `figure` and `rest` are shown beside its bar, `trouble` in place of it,
 * with a link to sign in where that is the cure; `unfinished` asks for the file.
 * @typedef {{ art?: "file" | "good" | "bad", figure?: string, rest?: string,
 *   trouble?: { title: string, text: string, needsSignIn?: boolean }, unfinished?: string,
 *   buttons: Button[] }} Standing
 */

/** @param {Upload} upload @returns {Standing} */
export function standingOf(upload) {
  const percent = `${Math.floor((upload.sent_bytes / upload.size_bytes) * 100)} %`;
  if (upload.publishing === "published") return { art: "good", buttons: [] };
  switch (upload.phase) {
    case "unfinished":
      return { unfinished: unfinishedInWords(upload), buttons: [] };
    case "waiting": {
      const rest = "starts when another upload has finished";
      return { figure: "Waiting", rest, buttons: ["cancel"] };
    }
    case "sending": {
      const figure = upload.sent_bytes ? percent : "Starting…";
      return { figure, rest: sendingInWords(upload), buttons: ["pause", "cancel"] };
    }
    case "paused":
      return { figure: `Paused at ${percent}`, buttons: ["resume", "cancel"] };
    case "offline": {
      const rest = "goes on by itself once you are connected again";
      return { figure: `Offline at ${percent}`, rest, buttons: ["cancel"] };
    }
    case "confirming": {
      const rest = "checking that everything has arrived…";
      return { figure: percent, rest, buttons: ["cancel"] };
    }
    case "sent": {
      const rest = upload.file ? "" : "only publishing is missing";
      return { art: "good", figure: "Uploaded", rest, buttons: ["remove"] };
    }
    case "cancelled":
      return { figure: "Cancelled", buttons: ["retry", "remove"] };
    default:
      return troubleOf(upload);
  }
}

/** @param {Upload} upload */
function unfinishedInWords({ arrived_bytes, size_bytes, saved_at }) {
  const when = formatWhen(saved_at);
  if (arrived_bytes === null) return `Begun ${when}. Choose the same file to go on with it.`;
  if (arrived_bytes === 0) {
    return `Begun ${when}; nothing has arrived yet. Choose the same file to send it.`;
  }
  const percent = Math.min(99, Math.floor((arrived_bytes / size_bytes) * 100));
  const arrived = `${percent} % (${formatSize(arrived_bytes)}) has arrived`;
  return `Begun ${when}; ${arrived}. Choose the same file to go on from there.`;
}

/** @param {Upload} upload */
function sendingInWords({ failure, sent_bytes, size_bytes, rate: { speed_bps } }) {
  if (failure) return `${transferTrouble(failure)[0]}; trying again by itself…`;
  if (!sent_bytes) return "";
  const arrived = `${formatSize(sent_bytes)} of ${formatSize(size_bytes)}`;
  if (!speed_bps) return arrived;
  const left = formatTimeLeft((size_bytes - sent_bytes) / speed_bps);
  return `${arrived} · ${formatSize(speed_bps)}/s · ${left}`;
}

/** @param {Upload} upload failed, or refused @returns {Standing} */
function troubleOf({ failure, inspection, file }) {
  const refusal = inspection?.findings.find(({ weight }) => weight === "refuse");
  if (refusal) return { art: "bad", trouble: refusal, buttons: ["remove"] };
  const [title, text] = transferTrouble(failure);
  const isPassing = needsSignIn(failure) || quotaTrouble(failure) !== null;
  const isFinal = failure instanceof Refused && !isBusy(failure) && !isPassing;
  const buttons = /** @type {Button[]} */ (file && !isFinal ? ["retry", "remove"] : ["remove"]);
  return { art: "bad", trouble: { title, text, needsSignIn: needsSignIn(failure) }, buttons };
}

/** @type {Record<Exclude<import("./retry.js").FailureCode, "">, [string, string]>} */
const TRANSFER_TROUBLES = {
  file_unreadable: [
    "The file can’t be read any more",
    "It was moved, changed or removed since you chose it, or its drive is away. Try again once it is back, or choose it again; what has arrived stays.",
  ],
  etag_hidden: [
    "The file storage isn’t set up for uploads in parts",
    "Its CORS rules have to expose the ETag header. Please tell whoever runs this portal.",
  ],
  incomplete: [
    "The file did not arrive whole",
    "The file storage took everything and still doesn’t have it. Try again.",
  ],
};

/** @param {Error | null} error @returns {[title: string, text: string]} */
function transferTrouble(error) {
  if (error instanceof NotPublished) return ["This file has to be uploaded again", error.words];
  if (isSignedOut(error)) {
    return ["The upload has stopped", `${SIGNED_OUT} What has arrived stays.`];
  }
  if (error instanceof SomeoneElse) return ["The upload has stopped", SOMEONE_ELSE];
  const quota = quotaTrouble(error);
  if (quota) return [quota.title, quota.text];
  if (error instanceof Refused) {
    const title = isBusy(error)
      ? "The portal is busy at the moment"
      : "The portal can’t take this file";
    const reasons = error.faults.map((fault) => fault.message).join(" ");
    return [title, reasons || error.detail || "Try again in a moment."];
  }
  if (error instanceof NoAnswer) {
    const text = "Check your connection, then try again. Nothing you typed is lost.";
    return ["The portal can’t be reached", text];
  }
  if (error instanceof TransferFailed && error.code) return TRANSFER_TROUBLES[error.code];
  if (error instanceof TransferFailed && error.status) {
    const text = `It may be busy, or its upload link expired (status ${error.status}). Try again with a new link.`;
    return ["The file storage refused the upload", text];
  }
  const text =
    "The connection to the file storage was lost. Check your connection, then try again.";
  return ["The upload was interrupted", text];
}

/** @param {Refused} error */
function isBusy({ status }) {
  return status >= 500 || status === 429;
}

/**
 * The publish button and the words beside it.
 * @param {Upload} upload
 * @returns {{ label: string, isBusy: boolean, words: string }}
 */
export function submitOf(upload) {
  const { phase, publishing } = upload;
  const label = "Publish video";
  if (phase === "refused") return { label, isBusy: true, words: "This file can’t be published." };
  if (publishing === "") return { label, isBusy: false, words: "" };
  if (publishing !== "wanted") return { label: "Publishing…", isBusy: true, words: "" };
  if (!is.isInFlight(upload)) {
    const words = "The upload needs your attention; publishing goes on after it.";
    return { label, isBusy: false, words };
  }
  const words = "Your video is published as soon as the upload finishes. Keep this page open.";
  return { label: "Waiting for the upload…", isBusy: true, words };
}

/** What is said of all files, once there are several. @param {State} state */
export function batchOf({ uploads, overall }) {
  const counted = uploads.filter(is.isCounted);
  const open = counted.filter(is.isPublishable);
  // What an earlier visit has sent adds no bytes, but is there.
  const isSent = counted.every(({ phase }) => phase === "sent");
  const share = isSent ? 1 : overall.share;
  return {
    isHidden: counted.length < 2,
    share,
    percent: share < 1 ? `${Math.floor(share * 100)} %` : "Uploaded",
    count: countInWords(counted),
    rest: overallInWords(overall),
    canPublish: open.length > 0,
    isWaiting: open.every(({ publishing }) => publishing !== ""),
  };
}

/** @param {Upload[]} uploads */
function countInWords(uploads) {
  const published = uploads.filter(({ publishing }) => publishing === "published").length;
  if (published === uploads.length) return `All ${uploads.length} videos are published.`;
  if (published) return `${published} of ${uploads.length} published`;
  const sent = uploads.filter(({ phase }) => phase === "sent").length;
  return `${sent} of ${uploads.length} uploaded`;
}

/** @param {is.Overall} overall follows the number of files */
function overallInWords({ sent_bytes, total_bytes, rate: { speed_bps } }) {
  if (sent_bytes >= total_bytes) return "";
  const parts = ["", `${formatSize(sent_bytes)} of ${formatSize(total_bytes)}`];
  if (speed_bps) parts.push(formatTimeLeft((total_bytes - sent_bytes) / speed_bps));
  return parts.join(" · ");
}

/**
 * What screen readers are told of new phases, findings, and each quarter of the whole; they are not
 * read the figures out.
 * @param {State} before
 * @param {State} after
 * @returns {string[]}
 */
export function newsOf(before, after) {
  const rows = after.uploads.flatMap((upload) => {
    const earlier = is.uploadOf(before, upload.number);
    const news = [];
    if (upload.file && earlier?.phase !== upload.phase) news.push(phaseInWords(upload));
    if (earlier?.inspection !== upload.inspection) news.push(findingsInWords(upload));
    return news.filter((words) => words !== "");
  });
  return [...rows, ...quarterInWords(before.overall, after.overall)];
}

/** @param {Upload} upload */
function phaseInWords({ phase, fileName }) {
  if (phase === "paused") return `${fileName} is paused.`;
  if (phase === "sent") return `${fileName} is uploaded.`;
  if (phase !== "offline") return "";
  return "You are offline. The upload goes on by itself once you are connected again.";
}

/** @param {Upload} upload */
function findingsInWords({ phase, fileName, inspection }) {
  if (phase === "refused" || !inspection?.findings.length) return "";
  return `${fileName}: ${inspection.findings.map(({ title }) => `${title}.`).join(" ")}`;
}

/** @param {is.Overall} before @param {is.Overall} after */
function quarterInWords(before, after) {
  const quarter = Math.floor(after.share * 4) * 25;
  if (quarter <= Math.floor(before.share * 4) * 25) return [];
  if (quarter < 100) return [`${quarter} % uploaded.`];
  return after.count > 1 ? [`All ${after.count} files are uploaded.`] : [];
}
