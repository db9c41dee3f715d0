/**
 * Looks into a chosen file: what kind it is, and what its tracks are; mediabunny makes sense of its
 * index. Runs as a worker: a file that keeps it busy keeps nothing else, and it can be ended.
 */

import { BlobSource, Input, Logging, LogLevel, MP4, QTFF } from "mediabunny";
import { readOutline } from "./file-boxes.js";

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

/** A sample entry that announces encryption: ISO/IEC 23001-7, or of the iTunes store. */
const ENCRYPTED = /stsd.{12}(encv|enca|drmi|drms)/s;
/** So much of an index is searched for that. */
const SEARCHED_BYTES = 4 * 2 ** 20;
const QUICKTIME_BRAND = "qt  ";
/** So many frames show how many there are in a second. */
const COUNTED_FRAMES = 120;

/** @type {Facts} */
const NOTHING = {
  ...{ outcome: "unknown", container: null, duration_s: null, media_share: 1 },
  ...{ isEncrypted: false, video: null, audio: null },
};

/** @param {Blob} file @returns {Promise<Facts>} */
export async function examine(file) {
  try {
    const { hasIndex, isIndexWhole, hasMedia, hasFragments, ...rest } = await readOutline(file);
    // As the portal itself judges it: most recorders write the index last, and a lone segment of a
    // stream never had one.
    const isCut = hasIndex || (hasMedia && !hasFragments);
    if (!isIndexWhole) return { ...NOTHING, outcome: isCut ? "truncated" : "not_a_video" };
    const { brand, media_share, index_at } = rest;
    // mediabunny doesn't understand all of these.
    const index = await file.slice(index_at, index_at + SEARCHED_BYTES).arrayBuffer();
    const isEncrypted = ENCRYPTED.test(new TextDecoder("latin1").decode(index));
    if (isEncrypted) return { ...NOTHING, outcome: "read", isEncrypted };
    const container = brand === QUICKTIME_BRAND || !brand ? "quicktime" : "mp4";
    return { ...(await tracks(file)), container, media_share };
  } catch (error) {
    console.info("The file was not understood here.", error);
    return NOTHING;
  }
}

/** @param {Blob} file @returns {Promise<Facts>} */
async function tracks(file) {
  Logging.level = LogLevel.Silent;
  const input = new Input({ source: new BlobSource(file), formats: [MP4, QTFF] });
  try {
    const found = await input.getTracks();
    if (!found.length) return NOTHING;
    const video = found.find((track) => track.isVideoTrack());
    const audio = found.find((track) => track.isAudioTrack());
    const durations = await Promise.all(found.map((track) => track.getDurationFromMetadata()));
    const codec = audio && (await audio.getCodec());
    return {
      ...NOTHING,
      outcome: "read",
      duration_s: longest(durations),
      video: video ? await videoFacts(video) : null,
      audio: audio ? { codec: codec ?? null, channels: await audio.getNumberOfChannels() } : null,
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

/** @param {import("mediabunny").InputVideoTrack} track @returns {Promise<VideoFacts>} */
async function videoFacts(track) {
  const colours = await track.getColorSpace();
  const counted = await track.computePacketStats(COUNTED_FRAMES).catch(() => null);
  return {
    codec: await track.getCodec(),
    width: Math.round(await track.getDisplayWidth()),
    height: Math.round(await track.getDisplayHeight()),
    rotation: await track.getRotation(),
    fps: counted?.averagePacketRate || null,
    transfer: colours.transfer ?? null,
    primaries: colours.primaries ?? null,
  };
}

// Node, in which this is tested without a browser, has no such listener.
globalThis.addEventListener?.("message", async ({ data }) => postMessage(await examine(data)));
