/** What the upload page says: troubles with what to do about them, states, facts and findings. */

import { NoAnswer, Refused } from "../api.js";
import { formatSize } from "../format.js";
import { TransferFailed } from "./failures.js";

/** @typedef {{ title: string, text: string, canRetry: boolean }} Trouble */

/**
 * @param {Error | null} error why a transfer failed
 * @returns {Trouble}
 */
export function uploadTrouble(error) {
  if (error instanceof Refused) return refusedUpload(error);
  if (error instanceof NoAnswer) {
    return {
      title: "The portal can’t be reached",
      text: "Check your connection, then try again. Nothing you typed is lost.",
      canRetry: true,
    };
  }
  return error instanceof TransferFailed ? failedTransfer(error) : interrupted();
}

/** @param {TransferFailed} error */
function failedTransfer({ status, code }) {
  if (code) return FAILURES[code];
  if (!status) return interrupted();
  return {
    title: "The file storage refused the upload",
    text: `It may be busy, or its upload link expired (status ${status}). Try again with a new link.`,
    canRetry: true,
  };
}

/** @type {Record<Exclude<import("./failures.js").FailureCode, "">, Trouble>} */
const FAILURES = {
  file_unreadable: {
    title: "The file can’t be read any more",
    text: "It was moved, changed or removed since you chose it, or its drive is away. Try again once it is back, or choose it again; what has arrived stays.",
    canRetry: true,
  },
  etag_hidden: {
    title: "The file storage isn’t set up for uploads in parts",
    text: "Its CORS rules have to expose the ETag header. Please tell whoever runs this portal.",
    canRetry: true,
  },
  incomplete: {
    title: "The file did not arrive whole",
    text: "The file storage took everything and still doesn’t have it. Try again.",
    canRetry: true,
  },
};

/** @returns {Trouble} */
function interrupted() {
  return {
    title: "The upload was interrupted",
    text: "The connection to the file storage was lost. Check your connection, then try again.",
    canRetry: true,
  };
}

/** @param {Refused} error */
function refusedUpload(error) {
  const reasons = error.faults.map((fault) => fault.message).join(" ");
  const isBusy = error.status >= 500 || error.status === 429;
  return {
    title: isBusy ? "The portal is busy at the moment" : "The portal can’t take this file",
    text: reasons || error.detail || "Try again in a moment.",
    canRetry: isBusy,
  };
}

/**
 * @param {unknown} error from the request that publishes
 * @returns {string}
 */
export function publishTrouble(error) {
  if (error instanceof Refused) {
    return error.detail || `The portal answered with status ${error.status}. Try again.`;
  }
  return "The portal can’t be reached. Check your connection and publish again; your upload is safe.";
}

/**
 * Why a file isn't even uploaded.
 * @param {File} file
 * @param {string | null} contentType
 * @param {number} max_size_bytes 0 for any
 * @returns {string} empty when it is
 */
export function unsuitable(file, contentType, max_size_bytes) {
  if (!contentType) {
    return `“${file.name}” is not an MP4 or QuickTime video. Choose a file ending in .mp4, .m4v or .mov.`;
  }
  if (file.size === 0) return `“${file.name}” is empty. Choose another file.`;
  if (max_size_bytes > 0 && file.size > max_size_bytes) {
    const limit = formatSize(max_size_bytes);
    return `“${file.name}” is larger than ${limit}, the most this portal takes. Export it at a lower bit rate.`;
  }
  return "";
}

/** @type {Record<string, string>} */
const CODECS = {
  avc: "H.264",
  hevc: "HEVC",
  vp8: "VP8",
  vp9: "VP9",
  av1: "AV1",
  prores: "ProRes",
  mpeg4: "MPEG-4",
};

/**
 * @param {import("./examine.js").Facts} facts
 * @returns {string} such as "1920 × 1080 · 2:14 · 30 fps · H.264 · stereo"
 */
export function factsInWords({ video, audio, duration_s }) {
  const parts = [];
  if (video) parts.push(`${video.width} × ${video.height}`);
  if (duration_s) parts.push(formatClock(duration_s));
  if (video?.fps) parts.push(`${Number(video.fps.toFixed(2))} fps`);
  if (video?.codec) parts.push(CODECS[video.codec] ?? video.codec.toUpperCase());
  if (audio) parts.push(formatChannels(audio.channels));
  return parts.join(" · ");
}

/** @param {number} duration_s */
function formatClock(duration_s) {
  const seconds = Math.round(duration_s);
  const [h, min, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const end = String(s).padStart(2, "0");
  return h ? `${h}:${String(min).padStart(2, "0")}:${end}` : `${min}:${end}`;
}

/** @param {number} channels */
function formatChannels(channels) {
  if (channels === 1) return "mono";
  if (channels === 2) return "stereo";
  return channels === 6 ? "5.1 sound" : `${channels} channels`;
}

/** @type {Record<import("./findings.js").FindingCode, { title: string, text: string }>} */
const FINDINGS = {
  not_a_video: {
    title: "This is not a video we can read",
    text: "Export it as MP4 or QuickTime and choose the result.",
  },
  truncated: {
    title: "The end of this file is missing",
    text: "A copy of it was probably interrupted. Choose the complete file.",
  },
  no_video_track: {
    title: "Only the sound track was found",
    text: "Check the export settings, then choose a file with a picture.",
  },
  encrypted: {
    title: "This file is copy-protected",
    text: "Choose an unprotected original.",
  },
  too_long: {
    title: "Longer than this portal takes",
    text: "Cut it into parts and upload them one by one.",
  },
  too_large: {
    title: "A larger picture than this portal takes",
    text: "Export it in a smaller size.",
  },
  end_missing: {
    title: "The end seems to be missing",
    text: "The portal may refuse this file. If you have a complete copy, upload that.",
  },
  no_audio: { title: "No audio track", text: "This video is published without sound." },
  hdr: { title: "HDR", text: "It will be converted to standard colours." },
  frame_rate: {
    title: "High frame rate",
    text: "It will be reduced by leaving out whole frames.",
  },
  surround: { title: "Surround sound", text: "It will be mixed down to stereo." },
  portrait: { title: "Portrait", text: "It is published upright, as it was shot." },
  unknown_codec: {
    title: "A codec this page doesn’t know",
    text: "The portal will look at the file itself.",
  },
  unreadable: {
    title: "This page couldn’t look into the file",
    text: "The portal will, once it is uploaded.",
  },
};

/** @param {import("./findings.js").Finding} finding */
export function findingInWords({ code }) {
  return FINDINGS[code];
}

/**
 * Why the chosen file doesn't continue an unfinished upload.
 * @param {import("./saved.js").Saved} saved
 * @param {File} file
 */
export function wrongFile(saved, file) {
  if (file.name !== saved.fileName) {
    return `This is “${file.name}”; the unfinished upload is of “${saved.fileName}”. Choose that file, or discard the upload.`;
  }
  if (file.size !== saved.size_bytes) {
    const [now, then] = [formatSize(file.size), formatSize(saved.size_bytes)];
    const sizes = now === then ? "another size" : `${now}, but the upload is of ${then}`;
    return `This file has the right name but ${sizes}. It was changed, or is another one of that name.`;
  }
  return "This file has the right name and size, but its content is another. Choose the file that was uploaded before.";
}

/**
 * @param {number | null} sent_bytes null when that couldn't be found out
 * @param {import("./saved.js").Saved} saved
 */
export function unfinishedInWords(sent_bytes, saved) {
  const when = formatWhen(saved.saved_at);
  if (sent_bytes === null) return `Begun ${when}. Choose the same file to go on with it.`;
  if (sent_bytes === 0) {
    return `Begun ${when}; nothing has arrived yet. Choose the same file to send it.`;
  }
  const percent = Math.min(99, Math.floor((sent_bytes / saved.size_bytes) * 100));
  const arrived = `${percent} % (${formatSize(sent_bytes)}) has arrived`;
  return `Begun ${when}; ${arrived}. Choose the same file to go on from there.`;
}

/** @param {number | string} moment */
export function formatWhen(moment) {
  const date = new Date(moment);
  if (Number.isNaN(date.getTime())) return "earlier";
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const isToday = date.toDateString() === new Date().toDateString();
  if (isToday) return `today at ${time}`;
  return `on ${date.toLocaleDateString("en-GB", { day: "numeric", month: "long" })} at ${time}`;
}
