/**
 * Looks into a chosen file: what kind it is, and what its tracks are. It reads the file's index
 * alone, without the sample tables; mediabunny makes sense of the descriptions in it.
 *
 * Runs as a worker: a file that keeps it busy keeps nothing else, and it can be ended.
 */

import { BufferSource, Input, Logging, LogLevel, MP4, QTFF } from "mediabunny";
import { OutOfBudget, readBoxes } from "./file-boxes.js";

/**
 * What a file is: "read" has tracks; "unknown" was not understood, which says nothing against it.
 * @typedef {"read" | "unknown" | "not_a_video" | "truncated"} Outcome
 *
 * Width and height are as shown: upright, with square pixels. The codec is null when it has no
 * name here.
 * @typedef {{ codec: string | null, width: number, height: number, rotation: number,
 *   fps: number | null, transfer: string | null, primaries: string | null }} VideoFacts
 * @typedef {{ codec: string | null, channels: number }} AudioFacts
 *
 * @typedef {{ outcome: Outcome, container: "mp4" | "quicktime" | null, duration_s: number | null,
 *   media_share: number, isEncrypted: boolean, video: VideoFacts | null,
 *   audio: AudioFacts | null }} Facts
 */

/** Sample entries that announce encryption: ISO/IEC 23001-7, and those of the iTunes store. */
const ENCRYPTED = new Set(["encv", "enca", "drmi", "drms"]);
const QUICKTIME_BRAND = "qt  ";

/** @param {Blob} file @returns {Promise<Facts>} */
export async function examine(file) {
  try {
    const { outline, slim } = await readBoxes(file);
    if (!slim) return nothing(verdict(outline));
    const facts = await tracks(slim);
    const container = outline.brand === QUICKTIME_BRAND || !outline.brand ? "quicktime" : "mp4";
    return { ...facts, container, media_share: outline.media_share };
  } catch (error) {
    if (!(error instanceof OutOfBudget)) console.info("The file was not understood here.", error);
    return nothing("unknown");
  }
}

/** @param {Outcome} outcome @returns {Facts} */
function nothing(outcome) {
  return {
    outcome,
    container: null,
    duration_s: null,
    media_share: 1,
    isEncrypted: false,
    video: null,
    audio: null,
  };
}

/**
 * Why there is no index: as the portal itself judges it.
 * @param {import("./file-boxes.js").Outline} outline
 * @returns {Outcome}
 */
function verdict({ index, hasMedia, hasFragments }) {
  if (index) return "truncated";
  // Most recorders write the index last. A lone segment of a stream never had one.
  return hasMedia && !hasFragments ? "truncated" : "not_a_video";
}

/** @param {import("./file-boxes.js").Slim} slim @returns {Promise<Facts>} */
async function tracks({ bytes, sampleCounts }) {
  Logging.level = LogLevel.Silent;
  const input = new Input({ source: new BufferSource(bytes), formats: [MP4, QTFF] });
  try {
    const found = await input.getTracks();
    if (!found.length) return nothing("unknown");
    const video = found.find((track) => track.isVideoTrack());
    const audio = found.find((track) => track.isAudioTrack());
    const durations = await Promise.all(found.map((track) => track.getDurationFromMetadata()));
    const kinds = await Promise.all(found.map((track) => track.getInternalCodecId()));
    const frames = video && sampleCounts.get(video.id);
    return {
      ...nothing("read"),
      duration_s: longest(durations),
      isEncrypted: kinds.some((kind) => ENCRYPTED.has(String(kind))),
      video: video ? await videoFacts(video, frames, durations[found.indexOf(video)]) : null,
      audio: audio
        ? { codec: await audio.getCodec(), channels: await audio.getNumberOfChannels() }
        : null,
    };
  } finally {
    input.dispose();
  }
}

/** @param {(number | null)[]} durations_s */
function longest(durations_s) {
  const known = durations_s.filter((duration) => duration !== null && Number.isFinite(duration));
  return known.length ? Math.max(.../** @type {number[]} */ (known)) : null;
}

/**
 * @param {import("mediabunny").InputVideoTrack} track
 * @param {number | undefined} frames
 * @param {number | null | undefined} duration_s
 * @returns {Promise<VideoFacts>}
 */
async function videoFacts(track, frames, duration_s) {
  const colours = await track.getColorSpace();
  return {
    codec: await track.getCodec(),
    width: Math.round(await track.getDisplayWidth()),
    height: Math.round(await track.getDisplayHeight()),
    rotation: await track.getRotation(),
    fps: frames && duration_s ? frames / duration_s : null,
    transfer: colours.transfer ?? null,
    primaries: colours.primaries ?? null,
  };
}

// Node, in which this is tested without a browser, has no such listener.
globalThis.addEventListener?.("message", async ({ data }) => postMessage(await examine(data)));
