/** Texts and actions for the state of an upload. Pure. */

import {
  formatBriefTime,
  formatNumber,
  formatPercent,
  formatSize,
  formatTimeLeft,
  formatWhen,
} from "../format.js";
import { gettext, ngettext } from "../messages.js";
import { needsSignIn } from "../people/session.js";
import { formatOf } from "../preflight/findings.js";
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

const NO_PROGRESS = gettext("Waiting for storage to respond…");
/** Time left from which people may leave the page in the meantime. */
const LONG_TRANSFER_S = 20;

/** Return a share as progress shows it, which is 100% only at the end. @param {number} share */
const formatProgress = (share) => formatPercent(Math.floor(share * 100) / 100);

/** Return the status of an upload. @param {Upload} upload @returns {Status} */
export function statusOf(upload) {
  if (upload.publishing === "published") return publishedStatus(upload);
  const share = upload.sent_bytes / upload.size_bytes;
  const percent = formatProgress(share);
  switch (upload.phase) {
    case "unfinished": {
      const figure = upload.arrived_bytes
        ? // Translators: status of an upload.
          gettext("Unfinished at %(percent)s", { percent })
        : // Translators: status of an upload.
          gettext("Unfinished");
      return { figure, share, unfinished: unfinishedText(upload), buttons: ["remove"] };
    }
    case "waiting": {
      const figure = gettext("Waiting for another upload to finish");
      return { figure, share, buttons: ["cancel"] };
    }
    case "sending": {
      const figure = share || upload.rate.speed_bps ? percent : gettext("Starting…");
      const buttons = /** @type {Button[]} */ (["pause", "cancel"]);
      return { figure, rest: sendingText(upload), share: share || null, buttons };
    }
    case "paused":
      return {
        // Translators: status of an upload.
        figure: gettext("Paused at %(percent)s", { percent }),
        // Translators: remark on a paused upload.
        rest: is.isSentWhole(upload) ? gettext("small files restart from the beginning") : "",
        share,
        buttons: ["resume", "cancel"],
      };
    case "confirming": {
      const figure = gettext("Checking the upload…");
      return { figure, rest: upload.isSilent ? NO_PROGRESS : "", share, buttons: ["cancel"] };
    }
    case "sent": {
      const isReady = !upload.file && !is.faultsOf(upload).length;
      const rest = isReady ? gettext("Ready to publish") : "";
      // Translators: status of an upload.
      return { art: "good", figure: gettext("Uploaded"), rest, buttons: ["remove"] };
    }
    case "cancelled":
      // Translators: status of an upload.
      return { figure: gettext("Cancelled"), canReplace: true, buttons: ["retry", "remove"] };
    default:
      return failedStatus(upload);
  }
}

/** @param {Upload} upload @returns {Status} */
function publishedStatus({ processing }) {
  /** @type {Status} */
  const done = {
    art: "good",
    // Translators: status of a video after its upload.
    figure: gettext("Published"),
    buttons: [],
  };
  if (!processing) return done;
  const { stage, percent, queuePosition, failure } = processing;
  if (stage === "ready") return { ...done, figure: gettext("Ready to watch") };
  if (stage === "failed") {
    // Translators: status of a video.
    return { ...done, art: "bad", figure: gettext("Couldn’t be processed"), rest: failure };
  }
  if (stage === "waiting") return { ...done, rest: queueText(queuePosition ?? 1) };
  const share = percent / 100;
  // Translators: status of a video.
  const figure = gettext("Processing %(percent)s", { percent: formatProgress(share) });
  return { ...done, figure, share };
}

/** @param {number} position 1 for the next video */
function queueText(position) {
  // Translators: of a video that waits to be processed.
  if (position <= 1) return gettext("In queue");
  return gettext("In queue: position %(position)s", { position: formatNumber(position) });
}

/** @param {Upload} upload */
function unfinishedText(upload) {
  const { arrived_bytes, saved_at } = upload;
  const when = formatWhen(saved_at);
  if (is.isSentWhole(upload)) {
    const request = gettext("Choose the same file again: small files restart from the beginning.");
    return `${startedText(when)} ${request}`;
  }
  const start = arrived_bytes ? arrivedText(when, formatSize(arrived_bytes)) : startedText(when);
  const request = gettext("Choose the same file to continue.");
  return `${start} ${request}`;
}

/** @param {ReturnType<typeof formatWhen>} when an upload was started */
function startedText({ isToday, date, time }) {
  return isToday
    ? // Translators: when an upload was started.
      gettext("Started today at %(time)s.", { time })
    : // Translators: when an upload was started.
      gettext("Started on %(date)s at %(time)s.", { date, time });
}

/** @param {ReturnType<typeof formatWhen>} when an upload was started @param {string} size */
function arrivedText({ isToday, date, time }, size) {
  return isToday
    ? // Translators: when an upload was started, and how much of the file has arrived.
      gettext("Started today at %(time)s; %(size)s uploaded.", { time, size })
    : // Translators: when an upload was started, and how much of the file has arrived.
      gettext("Started on %(date)s at %(time)s; %(size)s uploaded.", { date, time, size });
}

/** @param {Upload} upload */
function sendingText(upload) {
  const { failure, isSilent, rate } = upload;
  if (failure) return [describeTransferError(failure)[0], gettext("Retrying…")].join(" · ");
  if (isSilent) return NO_PROGRESS;
  if (!rate.speed_bps) return "";
  const left_s = leftOf(upload) / rate.speed_bps;
  // Translators: speed of an upload, such as "12.4 MB/s".
  const speed = gettext("%(size)s/s", { size: formatSize(rate.speed_bps) });
  const facts = [speed, formatTimeLeft(left_s)];
  const needsWarning = is.isSentWhole(upload) && left_s > LONG_TRANSFER_S;
  // Translators: an upload starts from the beginning if people reload the page.
  if (needsWarning) facts.push(gettext("restarts if you reload"));
  return facts.join(" · ");
}

/** Return the status of a failed or refused upload. @param {Upload} upload @returns {Status} */
function failedStatus({ failure, inspection, file }) {
  const refusal = inspection?.findings.find(({ weight }) => weight === "refuse");
  const bad = { art: /** @type {const} */ ("bad"), canReplace: true };
  if (refusal) {
    // Translators: status of an upload.
    const figure = gettext("Can’t be published");
    return { ...bad, figure, trouble: refusal, buttons: ["remove"] };
  }
  const [title, text] = describeTransferError(failure);
  const shouldRetry = file && canTryAgain(failure);
  const buttons = /** @type {Button[]} */ (shouldRetry ? ["retry", "remove"] : ["remove"]);
  const trouble = { title, text, needsSignIn: needsSignIn(failure) };
  // Translators: status of an upload.
  return { ...bad, figure: gettext("Not uploaded"), trouble, buttons };
}

/**
 * Return the remark about publishing in an upload's line.
 * @param {Upload} upload @returns {{ text: string, isBad?: boolean }}
 */
export function noteOf(upload) {
  const { publishing, publishError, faults, draft } = upload;
  if (draft) return { text: gettext("Waits until you have chosen the part to send") };
  if (publishing === "publishing") return { text: gettext("Publishing…") };
  if (publishing === "requested") {
    if (is.isInFlight(upload)) {
      return { text: gettext("Will be published when the upload finishes") };
    }
    // Translators: beside an upload that has failed.
    return { text: gettext("Fix this to publish"), isBad: true };
  }
  if (publishError) return { text: gettext("Not published yet"), isBad: true };
  const hasFormFault = faults.some(({ pointer }) => pointer !== "/file");
  if (hasFormFault) return { text: gettext("Some details are missing"), isBad: true };
  return { text: is.isDiscarded(upload) ? "" : repackedText(upload) };
}

/** @param {Upload} upload */
function repackedText({ repackedFrom, trim, inspection }) {
  if (trim) {
    const { start_s, end_s } = trim;
    const times = { start: formatBriefTime(start_s), end: formatBriefTime(end_s) };
    // Translators: times in a film, of which a part is uploaded.
    return gettext("Only %(start)s to %(end)s is sent", times);
  }
  if (!repackedFrom) return "";
  const { format } = formatOf(repackedFrom);
  if (inspection?.findings.some(({ code }) => code === "subtitles")) {
    // Translators: format of a file, such as "Matroska".
    return gettext("Repacked from %(format)s, without subtitles that are pictures", { format });
  }
  // Translators: format of a file, such as "Matroska".
  return gettext("Repacked from %(format)s, nothing is lost", { format });
}

/** @type {Record<string, string>} */
const VISIBILITIES = {
  // Translators: who can watch a video.
  public: gettext("Public"),
  // Translators: who can watch a video.
  unlisted: gettext("Unlisted"),
  // Translators: who can watch a video.
  members: gettext("Members"),
  // Translators: a private video, whose page everyone can see.
  page: gettext("Private with public page"),
  // Translators: who can watch a video.
  private: gettext("Private"),
};

/**
 * Return the visibility in words, if it is not the default.
 * @param {Upload} upload @param {string} defaultVisibility
 */
export const visibilityText = ({ details: { visibility } }, defaultVisibility) =>
  visibility === defaultVisibility ? "" : (VISIBILITIES[visibility] ?? "");

/**
 * Return that details of an upload were applied to others.
 * @param {Upload[]} applied @returns {string}
 */
export function appliedText({ length }) {
  const count = formatNumber(length);
  return ngettext("Applied to %(count)s video", "Applied to %(count)s videos", length, { count });
}

/** Return the announcement of the same. @param {Upload[]} applied @returns {string} */
export function appliedAnnouncement({ length }) {
  const count = formatNumber(length);
  return ngettext("Applied to %(count)s video.", "Applied to %(count)s videos.", length, { count });
}

/**
 * Return the question before an action that deletes uploaded data, or shows a video to more people.
 * @param {State} state @param {string} action @param {number} number of the upload
 * @returns {{ title: string, text: string, yes: string, no: string } | null} null if none is needed
 */
export function questionOf(state, action, number) {
  const upload = is.uploadOf(state, number);
  if (action === "remove" && upload && is.holdsSent(upload)) {
    return {
      title: gettext("Remove “%(name)s”?", { name: upload.fileName }),
      text: gettext("%(size)s that you have uploaded will be deleted.", {
        size: formatSize(upload.sent_bytes),
      }),
      // Translators: button that removes an upload from the list.
      yes: gettext("Remove"),
      // Translators: button that closes a question.
      no: gettext("Cancel"),
    };
  }
  const loosened = action === "copy" ? is.loosenedBy(state, number) : [];
  if (!loosened.length) return null;
  return {
    text: gettext(
      "More people will be able to watch. Categories, tags and the people to share with are applied either way.",
    ),
    ...(QUESTIONS[is.sharedOf(state, number).visibility ?? ""] ?? unlistedQuestion)(loosened),
    no: gettext("Keep current visibility"),
  };
}

/** @param {Upload[]} uploads that would become public */
function publicQuestion(uploads) {
  const { length } = uploads;
  const title =
    length > 1
      ? ngettext("Make %(count)s video public?", "Make %(count)s videos public?", length, {
          count: formatNumber(length),
        })
      : gettext("Make “%(name)s” public?", { name: uploads[0]?.fileName ?? "" });
  // Translators: button that makes one or more videos public.
  return { title, yes: gettext("Make public") };
}

/** @param {Upload[]} uploads that would become unlisted */
function unlistedQuestion(uploads) {
  const { length } = uploads;
  const title =
    length > 1
      ? ngettext("Make %(count)s video unlisted?", "Make %(count)s videos unlisted?", length, {
          count: formatNumber(length),
        })
      : gettext("Make “%(name)s” unlisted?", { name: uploads[0]?.fileName ?? "" });
  // Translators: button that makes one or more videos unlisted.
  return { title, yes: gettext("Make unlisted") };
}

/** @param {Upload[]} uploads that would become visible to everyone with an account */
function membersQuestion(uploads) {
  const { length } = uploads;
  const title =
    length > 1
      ? ngettext(
          "Show %(count)s video to all members?",
          "Show %(count)s videos to all members?",
          length,
          { count: formatNumber(length) },
        )
      : gettext("Show “%(name)s” to all members?", { name: uploads[0]?.fileName ?? "" });
  // Translators: button that shows one or more videos to everyone with an account.
  return { title, yes: gettext("Show to members") };
}

/** @param {Upload[]} uploads whose pages would become public */
function pageQuestion(uploads) {
  const { length } = uploads;
  const title =
    length > 1
      ? ngettext(
          "Show the page of %(count)s video to everyone?",
          "Show the pages of %(count)s videos to everyone?",
          length,
          { count: formatNumber(length) },
        )
      : gettext("Show the page of “%(name)s” to everyone?", { name: uploads[0]?.fileName ?? "" });
  const text = gettext(
    "The same people will be able to watch. Categories, tags and the people to share with are applied either way.",
  );
  // Translators: button that shows the page of one or more private videos to everyone.
  return { title, text, yes: gettext("Show page") };
}

/**
 * Questions by visibility.
 * @type {Record<string, (uploads: Upload[]) => { title: string, text?: string, yes: string }>}
 */
const QUESTIONS = {
  public: publicQuestion,
  unlisted: unlistedQuestion,
  members: membersQuestion,
  page: pageQuestion,
};

/**
 * Return the state of the button that publishes, and the text beside it.
 * @param {State} state
 * @returns {{ isHidden: boolean, label: string, isBusy: boolean, hint: string,
 *   isIncomplete?: boolean }} `isIncomplete` if every upload lacks details
 */
export function submitOf({ uploads }) {
  const open = uploads.filter(is.isPublishable);
  const left = open.filter(({ publishing }) => publishing === "");
  if (left.length) {
    const incomplete = left.filter((upload) => is.faultsOf(upload).length);
    const isIncomplete = incomplete.length === left.length;
    return {
      isHidden: false,
      label: publishLabel(left.length),
      isBusy: false,
      hint: missingDetailsText(incomplete),
      isIncomplete,
    };
  }
  const isWaiting = open.some(({ publishing }) => publishing === "requested");
  const hint = isWaiting
    ? gettext("Will be published when the upload finishes. Keep this page open.")
    : "";
  const isHidden = open.length === 0;
  const label = isWaiting ? gettext("Waiting…") : gettext("Publishing…");
  return { isHidden, label, isBusy: true, hint };
}

/** @param {number} length number of uploads */
function publishLabel(length) {
  // Translators: button that publishes a video.
  if (length < 2) return gettext("Publish");
  const count = formatNumber(length);
  // Translators: button that publishes several videos.
  return ngettext("Publish %(count)s video", "Publish %(count)s videos", length, { count });
}

/** Return which details are missing. @param {Upload[]} incomplete */
function missingDetailsText(incomplete) {
  const { length } = incomplete;
  if (!length) return "";
  const missing = new Set(incomplete.flatMap(is.faultsOf).map(({ pointer }) => pointer));
  const values = { count: formatNumber(length) };
  if (!missing.has("/categoryIds")) {
    return ngettext(
      "%(count)s video needs a title",
      "%(count)s videos need a title",
      length,
      values,
    );
  }
  if (!missing.has("/title")) {
    return ngettext(
      "%(count)s video needs a category",
      "%(count)s videos need a category",
      length,
      values,
    );
  }
  return ngettext(
    "%(count)s video needs a title or a category",
    "%(count)s videos need a title or a category",
    length,
    values,
  );
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
  const isPublished = published === counted.length;
  const sent = counted.filter(({ phase }) => phase === "sent").length;
  const { sent_bytes, total_bytes, left_bytes, speed_bps } = overall;
  const sizes = { sent: formatSize(sent_bytes), total: formatSize(total_bytes) };
  // Translators: sizes of what is uploaded and of all files, such as "12.4 MB of 3.1 GB".
  const parts = ["", gettext("%(sent)s of %(total)s", sizes)];
  const running = counted.filter(is.isRunning);
  const isOffline = running.length > 0 && running.every(is.isStalled);
  if (isOffline) parts.push(gettext("No connection, retrying…"));
  else if (speed_bps) parts.push(formatTimeLeft(left_bytes / speed_bps));
  return {
    isHidden: counted.length < 2,
    share,
    percent: share < 1 ? formatProgress(share) : "",
    count: isPublished ? publishedText(counted) : countText(published, sent, counted.length),
    // The text continues the number of files.
    rest: sent_bytes < total_bytes ? parts.join(" · ") : "",
  };
}

/**
 * Return how many videos are published or, before the first one is, uploaded.
 * @param {number} published @param {number} sent @param {number} all
 */
function countText(published, sent, all) {
  const total = formatNumber(all);
  return published
    ? ngettext("%(count)s of %(total)s published", "%(count)s of %(total)s published", published, {
        count: formatNumber(published),
        total,
      })
    : ngettext("%(count)s of %(total)s uploaded", "%(count)s of %(total)s uploaded", sent, {
        count: formatNumber(sent),
        total,
      });
}

/** Return what became of videos that are all published. @param {Upload[]} uploads */
function publishedText(uploads) {
  const failed = uploads.filter(({ processing }) => processing?.stage === "failed").length;
  const good = uploads.length - failed;
  const count = formatNumber(good);
  const facts = [
    good
      ? ngettext("%(count)s video published", "%(count)s videos published", good, { count })
      : gettext("No videos published"),
  ];
  if (failed) {
    const values = { count: formatNumber(failed) };
    facts.push(
      // Translators: number of videos; it follows "3 videos published, ".
      ngettext(
        "%(count)s couldn’t be processed",
        "%(count)s couldn’t be processed",
        failed,
        values,
      ),
    );
  }
  return `${facts.join(", ")}.`;
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
      const name = fileName;
      if (phase === "paused") announcements.push(gettext("%(name)s is paused.", { name }));
      if (phase === "sent") announcements.push(gettext("%(name)s is uploaded.", { name }));
    }
    if (inspection?.findings.length && earlier?.inspection !== inspection) {
      const findings = inspection.findings.map(({ title }) => `${title}.`).join(" ");
      // Translators: name of a file, and sentences about it.
      announcements.push(gettext("%(name)s: %(findings)s", { name: fileName, findings }));
    }
    if (processing && earlier?.processing?.stage !== processing.stage) {
      const { stage, failure: reason } = processing;
      const title = video?.title ?? "";
      if (stage === "ready") {
        announcements.push(gettext("“%(title)s” is ready to watch.", { title }));
      }
      if (stage === "failed") {
        announcements.push(
          gettext("“%(title)s” couldn’t be processed: %(reason)s", { title, reason }),
        );
      }
    }
    return announcements;
  });
  const { share, count } = overallOf(after.uploads);
  const quarter = Math.floor(share * 4) * 25;
  if (quarter <= Math.floor(overallOf(before.uploads).share * 4) * 25) return each;
  if (quarter < 100) {
    const percent = formatPercent(quarter / 100);
    return [...each, gettext("%(percent)s uploaded.", { percent })];
  }
  return count < 2 ? each : [...each, allUploadedText(count)];
}

/** @param {number} files 2 or more */
function allUploadedText(files) {
  if (files === 2) return gettext("Both files are uploaded.");
  return ngettext("All %(count)s files are uploaded.", "All %(count)s files are uploaded.", files, {
    count: formatNumber(files),
  });
}
