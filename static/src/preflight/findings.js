/** Findings about a chosen file, with their texts for the editor. Pure. */

import { formatClock, formatNumber, formatSize, wholeSeconds } from "../format.js";
import { gettext, ngettext } from "../messages.js";
import { containerByName, extensionOf, repackableByName } from "./containers.js";

/** @typedef {import("./containers.js").Container} Container */
/** @typedef {import("./file-facts.js").Facts} Facts */
/**
 * Limits of the portal; 0 means no limit. `left` is the remaining quota of the account when the
 * page was opened; null means no quota.
 * @typedef {{ size_bytes: number, duration_s: number, pixels: number, left?: Left | null }} Limits
 * @typedef {{ videos: number | null, size_bytes: number | null }} Left
 */
/**
 * Weight of a finding. "refuse": the portal can't publish the file. "warn": the editor should check
 * the file. "info": a remark about the conversion.
 * @typedef {"refuse" | "warn" | "info"} Weight
 * @typedef {{ code: string, weight: Weight, title: string, text: string }} Finding
 * @typedef {{ facts: string, findings: Finding[], canTrim: boolean }} Inspection `canTrim` says whether
 *   a part of the film can be copied
 */

/** Limits of the portal. */
const MAX_SIDE_PX = 16_384;
const MIN_READABLE_SHARE = 0.9;
const MAX_FPS = 60.5;
const HDR_TRANSFERS = new Set(["pq", "hlg"]);

/** @type {Record<string, string>} */
const TYPES = { mp4: "video/mp4", m4v: "video/mp4", mov: "video/quicktime" };

/** Remedy for each kind of file. @type {Record<Container["kind"], string>} */
const REMEDIES = {
  video: gettext("Convert it to MP4, for example with HandBrake, then upload the MP4."),
  audio: gettext("Add a picture in a video editor, export the result as MP4, then upload that."),
  other: gettext("Choose a video: an MP4 or QuickTime file."),
};

/** Remedy on the upload page for films that it can't repack. */
export const OTHER_WAYS = gettext(
  "Convert it to MP4, for example with HandBrake, or publish it with the command “portal publish”.",
);

/** Names of formats that differ between languages. @type {Record<string, string>} */
const FORMATS = {
  // Translators: format of a file, for "This is an %(format)s file".
  "MPEG transport stream": gettext("MPEG transport stream"),
  // Translators: format of a file, for "This is an %(format)s file".
  "MPEG program stream": gettext("MPEG program stream"),
  // Translators: format of a file, for "This is an %(format)s file".
  "MPEG-4 audio": gettext("MPEG-4 audio"),
  // Translators: format of a file, for "This is a %(format)s file".
  "Windows Media audio": gettext("Windows Media audio"),
};

const WITHOUT_SOUND = gettext("This video is published without sound. Export it with AAC sound.");

/** @type {Record<string, [Weight, title: string, text: string]>} */
export const FINDINGS = {
  not_a_video: [
    "refuse",
    gettext("This isn’t a video that can be read"),
    gettext("Export it as MP4, then upload that."),
  ],
  truncated: [
    "refuse",
    gettext("The end of this file is missing"),
    gettext("Choose a complete copy of the file."),
  ],
  no_video_track: [
    "refuse",
    gettext("This file has sound but no picture"),
    gettext("Choose a file with a picture."),
  ],
  encrypted: [
    "refuse",
    gettext("This file is copy-protected"),
    gettext("Choose an unprotected original."),
  ],
  too_long: [
    "refuse",
    // Translators: of a video.
    gettext("Too long for this portal"),
    gettext("Split it, then upload each part."),
  ],
  too_large: [
    "refuse",
    gettext("The picture is too large for this portal"),
    gettext("Export it at a smaller size."),
  ],
  end_missing: [
    "warn",
    gettext("The end seems to be missing"),
    gettext("The portal may refuse this file. If you have a complete copy, upload that."),
  ],
  no_audio: [
    "warn",
    gettext("No audio track"),
    gettext("This video will be published without sound."),
  ],
  apac: [
    "warn",
    gettext("Apple spatial audio can’t be converted"),
    gettext("This video is published without sound. Record in stereo."),
  ],
  mpeg_h: ["warn", gettext("MPEG-H 3D Audio can’t be converted"), WITHOUT_SOUND],
  "ac-4": ["warn", gettext("Dolby AC-4 can’t be converted"), WITHOUT_SOUND],
  dolby_vision: [
    "warn",
    gettext("Dolby Vision that can’t be converted"),
    gettext("Its colours will look wrong. Export it as HDR10 or SDR, and upload that."),
  ],
  other_video: [
    "warn",
    gettext("Several videos in this file"),
    gettext(
      "The one with the largest picture will be published. If you need another one, export it alone.",
    ),
  ],
  hdr: ["info", "HDR", gettext("It will be converted to standard colours.")],
  frame_rate: ["info", gettext("High frame rate"), gettext("Some frames will be left out.")],
  surround: ["info", gettext("Surround sound"), gettext("It will be mixed down to stereo.")],
  portrait: [
    "info",
    // Translators: of a picture that is higher than wide.
    gettext("Portrait"),
    gettext("It will be published upright, as it was shot."),
  ],
  unknown_codec: [
    "info",
    gettext("Unknown codec"),
    gettext("The portal will check the file after the upload."),
  ],
  unreadable: ["refuse", gettext("This file can’t be read by the browser"), OTHER_WAYS],
  unsupported_codec: ["refuse", gettext("MP4 can’t carry what is in this file"), OTHER_WAYS],
  no_tracks: [
    "refuse",
    gettext("This file has neither picture nor sound"),
    gettext("Choose another file."),
  ],
  no_encoder: [
    "refuse",
    gettext("This browser can’t make a picture for sound alone"),
    gettext("Use another browser, or publish the file with the command “portal publish”."),
  ],
  too_much: [
    "refuse",
    gettext("This file needs too much memory"),
    gettext("Its key frames are too far apart. Publish it with the command “portal publish”."),
  ],
  stalled: ["refuse", gettext("Reading this file has come to a halt"), OTHER_WAYS],
  subtitles: [
    "info",
    gettext("Subtitles that are pictures"),
    gettext("They are left out. Add them as captions after the upload."),
  ],
  sound_alone: [
    "info",
    gettext("Sound without a picture"),
    gettext("It will be published as a video with a still picture."),
  ],
  unknown: [
    "info",
    gettext("This file couldn’t be checked here"),
    gettext("The portal will check it after the upload."),
  ],
};

/**
 * Return the findings about a file.
 * @param {Facts} facts @param {Limits} limits @param {string} fileName
 * @returns {Finding[]} the most severe first; only refusals if there is one
 */
export function findingsOf(facts, limits, fileName) {
  const { container } = facts;
  if (container) {
    const title = wronglyNamedText(container, extensionOf(fileName));
    return [{ code: "not_a_video", weight: "refuse", title, text: REMEDIES[container.kind] }];
  }
  const refusals = refusalCodes(facts, limits);
  const codes = refusals.length ? refusals : noteCodes(facts);
  return codes.map((code) => {
    const [weight, title, text] = FINDINGS[code] ?? ["info", code, ""];
    return { code, weight, title, text };
  });
}

/**
 * Return the name of a format without its English article, and whether that is "an".
 * @param {Container} container
 */
export function formatOf({ name }) {
  const format = name.replace(/^an? /, "");
  return { format: FORMATS[format] ?? format, isAn: name.startsWith("an ") };
}

/** @param {Container} container @param {string} extension @returns {string} */
function wronglyNamedText(container, extension) {
  const { format, isAn } = formatOf(container);
  return isAn
    ? // Translators: format of a file, such as "AVI", and the end of its name.
      gettext("This is an %(format)s file named .%(extension)s", { format, extension })
    : // Translators: format of a file, such as "WebM", and the end of its name.
      gettext("This is a %(format)s file named .%(extension)s", { format, extension });
}

/** Return the codes of refusals. @param {Facts} facts @param {Limits} limits */
function refusalCodes({ outcome, isEncrypted, isRepacked, video, duration_s }, limits) {
  if (outcome !== "read") return [outcome];
  if (isEncrypted) return ["encrypted"];
  if (!video && !isRepacked) return ["no_video_track"];
  const { width, height } = video ?? { width: 0, height: 0 };
  const isLarge = limits.pixels > 0 && width * height > limits.pixels;
  const codes = [];
  if (isLarge || Math.max(width, height) > MAX_SIDE_PX) codes.push("too_large");
  if (limits.duration_s > 0 && (duration_s ?? 0) > limits.duration_s) codes.push("too_long");
  return codes;
}

/** Return the codes of warnings and remarks. @param {Facts} facts */
function noteCodes({ media_share, video, hasOtherVideo, audio, subtitles }) {
  const codes = [];
  if (!video) codes.push("sound_alone");
  if (subtitles) codes.push("subtitles");
  // The share of bytes approximates the share of frames, which the portal counts.
  if (media_share < MIN_READABLE_SHARE) codes.push("end_missing");
  if (hasOtherVideo) codes.push("other_video");
  if (!audio) codes.push("no_audio");
  if (audio?.unsupported)
    codes.push(audio.unsupported.startsWith("mh") ? "mpeg_h" : audio.unsupported);
  if (video?.isDolbyOnly) codes.push("dolby_vision");
  else if (video && HDR_TRANSFERS.has(video.transfer ?? "")) codes.push("hdr");
  if (video?.fps && video.fps > MAX_FPS) codes.push("frame_rate");
  if (audio && audio.channels > 2 && !audio.unsupported) codes.push("surround");
  if (video && video.height > video.width) codes.push("portrait");
  if (video && !video.codec) codes.push("unknown_codec");
  return codes;
}

/** Names of codecs; others are shown in capitals. @type {Record<string, string>} */
const CODECS = { avc: "H.264", prores: "ProRes", mpeg4: "MPEG-4" };

/** Return a summary such as "1920 × 1080 · 2:14 · 30 fps · H.264 · stereo". @param {Facts} facts */
export function factsText({ video, audio, duration_s }) {
  const parts = [];
  if (video) parts.push(`${video.width} × ${video.height}`);
  if (duration_s) parts.push(formatClock(wholeSeconds(duration_s)));
  if (video?.fps) {
    const rate = formatNumber(Number(video.fps.toFixed(2)));
    // Translators: frames per second.
    parts.push(gettext("%(rate)s fps", { rate }));
  }
  if (video?.codec) parts.push(CODECS[video.codec] ?? video.codec.toUpperCase());
  if (audio) parts.push(formatChannels(audio.channels));
  return parts.join(" · ");
}

/** @param {number} channels */
function formatChannels(channels) {
  if (channels === 1) return gettext("mono");
  if (channels === 2) return gettext("stereo");
  if (channels === 6) return gettext("5.1 sound");
  // Translators: channels of sound.
  return ngettext("%(count)s channel", "%(count)s channels", channels, { count: channels });
}

/**
 * Return why a file can't be uploaded.
 * @param {File} file @param {string | null} contentType @param {number} max_size_bytes 0 for any
 * @param {boolean} [mayRepack] whether other formats can be uploaded here
 * @returns {string} empty if it can
 */
export function unsuitableReason(file, contentType, max_size_bytes, mayRepack = false) {
  const { name } = file;
  if (!contentType) {
    const container = containerByName(name);
    if (container) {
      const remedy = mayRepack ? OTHER_WAYS : REMEDIES[container.kind];
      return `${otherFormatText(container, name)} ${remedy}`;
    }
    if (mayRepack) {
      return gettext("“%(name)s” is neither a video nor sound. Choose another file.", { name });
    }
    return gettext(
      "“%(name)s” isn’t a video. Choose an MP4 or QuickTime file: .mp4, .m4v or .mov.",
      { name },
    );
  }
  if (file.size === 0) return gettext("“%(name)s” is empty. Choose another file.", { name });
  if (max_size_bytes > 0 && file.size > max_size_bytes) {
    return gettext(
      "“%(name)s” is larger than %(limit)s, the limit of this portal. Export it at a lower bit rate.",
      { name, limit: formatSize(max_size_bytes) },
    );
  }
  return "";
}

/** @param {Container} container @param {string} name of the file @returns {string} */
function otherFormatText(container, name) {
  const { format, isAn } = formatOf(container);
  return isAn
    ? // Translators: name of a file, and its format, such as "AVI".
      gettext("“%(name)s” is an %(format)s file.", { name, format })
    : // Translators: name of a file, and its format, such as "WebM".
      gettext("“%(name)s” is a %(format)s file.", { name, format });
}

/**
 * Return why a file can't be uploaded in addition to the files that were chosen before it.
 * @param {File} file @param {{ size_bytes: number }[]} chosen
 * @param {Left | null} [left] null without quotas @returns {string} empty if it can
 */
export function quotaReason(file, chosen, left) {
  if (!left) return "";
  const most_bytes = left.size_bytes ?? Number.POSITIVE_INFINITY;
  const left_bytes = chosen.reduce((rest, { size_bytes }) => rest - size_bytes, most_bytes);
  const { name } = file;
  if (left.videos !== null && chosen.length >= left.videos) {
    if (!left.videos) {
      return gettext(
        "“%(name)s” can’t be published now. Your account can publish no more videos. Try again later, or ask an owner of this portal to raise your limit.",
        { name },
      );
    }
    const count = formatNumber(left.videos);
    // Translators: the number of videos that the account can still publish.
    return ngettext(
      "“%(name)s” can’t be published now. Your account can publish only %(count)s more. Try again later, or ask an owner of this portal to raise your limit.",
      "“%(name)s” can’t be published now. Your account can publish only %(count)s more. Try again later, or ask an owner of this portal to raise your limit.",
      left.videos,
      { name, count },
    );
  }
  if (file.size <= left_bytes) return "";
  return gettext(
    "“%(name)s” is %(size)s, and your account has %(rest)s of storage left. Delete videos and reload this page, or ask an owner of this portal to raise your limit.",
    { name, size: formatSize(file.size), rest: formatSize(Math.max(0, left_bytes)) },
  );
}

/**
 * Return the content type for the upload of a file.
 * @param {File} file @returns {string | null} null if the portal doesn't accept the file
 */
export function contentTypeOf({ name, type }) {
  const byExtension = TYPES[extensionOf(name)];
  if (!byExtension) return null;
  if (Object.values(TYPES).includes(type)) return type;
  // Browsers know few extensions, so the name counts more than an empty or unusual type
  // (video/x-m4v).
  return type !== "" && !type.startsWith("video/") ? null : byExtension;
}

/**
 * Return the content type under which a page that can repack files sends one, by its name and type:
 * MP4 for the formats that are repacked, also for sound, otherwise the type of the file itself.
 * @param {File} file @returns {string | null} null if the portal doesn't accept the file
 */
export const sentTypeOf = (file) =>
  repackableByName(file.name) ? "video/mp4" : contentTypeOf(file);

/**
 * Return the message for a chosen file that is not the file of an unfinished upload.
 * @param {{ fileName: string, file_bytes: number }} upload
 */
export function wrongFile({ fileName, file_bytes }) {
  return gettext(
    "This is a different file. Choose “%(name)s” (%(size)s), unchanged since the upload started, or discard the upload.",
    { name: fileName, size: formatSize(file_bytes) },
  );
}
