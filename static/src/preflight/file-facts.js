/**
 * Inspects a chosen file: its kind and its tracks; mediabunny parses its index. Runs in a worker,
 * so that a file that keeps it busy blocks nothing else and can be stopped.
 */

import { BlobSource, Input, Logging, LogLevel, MP4, QTFF } from "mediabunny";
import { containerOf, SIGNATURE_BYTES } from "./containers.js";

/**
 * Kind of a file: "read" has tracks; "unknown" could not be parsed, which is no objection.
 * @typedef {"read" | "unknown" | "not_a_video" | "truncated"} Outcome
 *
 * Width and height are as shown: upright, with square pixels. The codec is null when it has no
 * name here.
 * @typedef {{ codec: string | null, width: number, height: number, fps: number | null,
 *   transfer: string | null, isDolbyOnly: boolean }} VideoFacts
 * @typedef {{ channels: number, unsupported: string | null }} AudioFacts
 * `unsupported` is the sample entry of sound that the portal can't convert.
 *
 * @typedef {{ outcome: Outcome, duration_s: number | null, media_share: number,
 *   isEncrypted: boolean, video: VideoFacts | null, audio: AudioFacts | null,
 *   container: import("./containers.js").Container | null }} Facts
 * `container` is what a file is that is no MP4 or QuickTime file, where that is known.
 * `media_share` is how much of the announced media is inside the file.
 */

/** Sample entries of encrypted tracks: ISO/IEC 23001-7, or of the iTunes store. */
const ENCRYPTED = /stsd.{12}(encv|enca|drmi|drms)/s;
/** Sample entries of sound without a decoder. */
const UNSUPPORTED_SOUND = new Set(["apac", "mha1", "mha2", "mhm1", "mhm2", "ac-4"]);
/** The configuration of Dolby Vision. */
const DOLBY_VISION = /dv[cvw]C/;
const DOLBY_RECORD_BYTES = 5;
/** The head of a clean aperture, a box of 40 bytes. */
const CLEAN_APERTURE = "\0\0\0(clap";
const APERTURE_BYTES = 32;
/** Part of an index that is searched for these boxes. */
const SEARCHED_BYTES = 4 * 2 ** 20;
/** Number of frames from which the frame rate is measured. */
const COUNTED_FRAMES = 120;
const HEADER_BYTES = 16;

/** @type {Facts} */
const NOTHING = {
  ...{ outcome: "unknown", duration_s: null, media_share: 1 },
  ...{ isEncrypted: false, video: null, audio: null, container: null },
};

/** @param {Blob} file @returns {Promise<Facts>} */
export async function examine(file) {
  try {
    const boxes = await readBoxes(file);
    const moov = boxes.find(({ kind }) => kind === "moov");
    const mdat = boxes.findLast(({ kind }) => kind === "mdat");
    if (!moov || moov.end > file.size) {
      // The portal uses the same rule: most recorders write the index last, and a single segment of
      // a stream never had one.
      const isCut = moov || (mdat && !boxes.some(({ kind }) => kind === "moof"));
      if (isCut) return { ...NOTHING, outcome: "truncated" };
      const first = new Uint8Array(await file.slice(0, SIGNATURE_BYTES).arrayBuffer());
      return { ...NOTHING, outcome: "not_a_video", container: containerOf(first) };
    }
    // mediabunny can't parse all of these.
    const index = await file.slice(moov.at, moov.at + SEARCHED_BYTES).arrayBuffer();
    const text = new TextDecoder("latin1").decode(index);
    const isEncrypted = ENCRYPTED.test(text);
    if (isEncrypted) return { ...NOTHING, outcome: "read", isEncrypted };
    const media_share = mdat ? shareOf(mdat, file) : 1;
    return { ...(await tracks(file, index, text)), media_share };
  } catch (error) {
    console.info("The file was not understood here.", error);
    return NOTHING;
  }
}

/**
 * Return whether the colours are in a form of Dolby Vision that the portal can't convert: profile
 * 5, and 10 or 20 without a compatible base layer.
 * @param {ArrayBuffer} index @param {string} text of the same bytes
 */
function isDolbyOnly(index, text) {
  const at = text.search(DOLBY_VISION) + 4;
  if (at < 4 || at + DOLBY_RECORD_BYTES > index.byteLength) return false;
  const record = new DataView(index, at, DOLBY_RECORD_BYTES);
  const profile = record.getUint8(2) >> 1;
  const compatibility = record.getUint8(4) >> 4;
  return profile === 5 || ((profile === 10 || profile === 20) && compatibility === 0);
}

/** @param {Box} box @param {Blob} file */
function shareOf({ body_at, end }, file) {
  return Math.min(1, (file.size - body_at) / (end - body_at));
}

/**
 * A top-level box of an MP4 or QuickTime file (ISO/IEC 14496-12); the boxes distinguish a truncated
 * file from one of another kind. `end` is the end according to the box, which a truncated file
 * doesn't reach.
 * @typedef {{ kind: string, at: number, body_at: number, end: number }} Box
 */

/** @param {Blob} file @returns {Promise<Box[]>} as far as they are of interest, and make sense */
async function readBoxes(file) {
  /** @type {Box[]} */
  const boxes = [];
  let at = 0;
  while (at + 8 <= file.size) {
    const header = new DataView(await file.slice(at, at + HEADER_BYTES).arrayBuffer());
    const { size_bytes, body_bytes } = sizeOf(header, file.size - at);
    if (size_bytes < body_bytes) break;
    const kind = String.fromCharCode(...[4, 5, 6, 7].map((offset) => header.getUint8(offset)));
    boxes.push({ kind, at, body_at: at + body_bytes, end: at + size_bytes });
    // There may be thousands of fragments.
    if (kind === "moof" && boxes.some((box) => box.kind === "moov")) break;
    at += size_bytes;
  }
  return boxes;
}

/** @param {DataView} header @param {number} rest_bytes to the end of the file */
function sizeOf(header, rest_bytes) {
  const size_bytes = header.getUint32(0);
  if (size_bytes === 1 && header.byteLength === HEADER_BYTES) {
    return { size_bytes: Number(header.getBigUint64(8)), body_bytes: 16 };
  }
  return { size_bytes: size_bytes === 0 ? rest_bytes : size_bytes, body_bytes: 8 };
}

/**
 * @param {Blob} file @param {ArrayBuffer} index @param {string} text of the same bytes
 * @returns {Promise<Facts>}
 */
async function tracks(file, index, text) {
  Logging.level = LogLevel.Silent;
  const input = new Input({ source: new BlobSource(file), formats: [MP4, QTFF] });
  try {
    const found = await input.getTracks();
    if (!found.length) return NOTHING;
    const video = found.find((track) => track.isVideoTrack());
    const sounds = found.filter((track) => track.isAudioTrack());
    return {
      ...NOTHING,
      outcome: "read",
      duration_s: await input.getDurationFromMetadata(),
      video: video ? await videoFacts(video, index, text) : null,
      audio: await audioFacts(sounds),
    };
  } finally {
    input.dispose();
  }
}

/**
 * @param {import("mediabunny").InputAudioTrack[]} sounds
 * @returns {Promise<AudioFacts | null>} of the first one that can be converted, else of the first
 */
async function audioFacts(sounds) {
  const facts = await Promise.all(
    sounds.map(async (track) => {
      const entry = String(await track.getInternalCodecId());
      const unsupported = UNSUPPORTED_SOUND.has(entry) ? entry : null;
      return { channels: await track.getNumberOfChannels(), unsupported };
    }),
  );
  return facts.find(({ unsupported }) => !unsupported) ?? facts[0] ?? null;
}

/**
 * @param {import("mediabunny").InputVideoTrack} track
 * @param {ArrayBuffer} index @param {string} text of the same bytes
 * @returns {Promise<VideoFacts>}
 */
async function videoFacts(track, index, text) {
  const colours = await track.getColorSpace();
  const coded = { width: await track.getCodedWidth(), height: await track.getCodedHeight() };
  const share = apertureShare(index, text, coded);
  const isTurned = (await track.getRotation()) % 180 === 90;
  const [shareX, shareY] = isTurned ? [share.y, share.x] : [share.x, share.y];
  const counted = await track.computePacketStats(COUNTED_FRAMES).catch(() => null);
  return {
    codec: await track.getCodec(),
    width: Math.round((await track.getDisplayWidth()) * shareX),
    height: Math.round((await track.getDisplayHeight()) * shareY),
    fps: counted?.averagePacketRate || null,
    transfer: colours.transfer ?? null,
    isDolbyOnly: isDolbyOnly(index, text),
  };
}

/**
 * Return the share of a frame's width and height in its clean aperture (ISO/IEC 14496-12, 12.1.4).
 * @param {ArrayBuffer} index @param {string} text of the same bytes
 * @param {{ width: number, height: number }} coded
 */
function apertureShare(index, text, coded) {
  const whole = { x: 1, y: 1 };
  const found = text.indexOf(CLEAN_APERTURE);
  const at = found + CLEAN_APERTURE.length;
  if (found < 0 || at + APERTURE_BYTES > index.byteLength) return whole;
  const box = new DataView(index, at, APERTURE_BYTES);
  const share = {
    x: box.getInt32(0) / box.getInt32(4) / coded.width,
    y: box.getInt32(8) / box.getInt32(12) / coded.height,
  };
  return share.x > 0 && share.x <= 1 && share.y > 0 && share.y <= 1 ? share : whole;
}

// Node, which runs the tests, has no such listener.
globalThis.addEventListener?.("message", async ({ data }) => postMessage(await examine(data)));
