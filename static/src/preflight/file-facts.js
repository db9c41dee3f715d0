/**
 * Inspection of a chosen file: its kind and its tracks. mediabunny parses its index. The inspection
 * runs in a worker, so that it never blocks the page and can be stopped.
 */

import { BlobSource, Input, Logging, LogLevel, MP4, QTFF } from "mediabunny";
import { readMatroska } from "../repack/matroska.js";
import { FORMATS, NotRepacked, readTracks } from "../repack/repack.js";
import { detectContainer, SIGNATURE_BYTES } from "./containers.js";

/**
 * Result of the inspection: "read" for a file with tracks; "unknown" for a file that could not be
 * parsed, which is uploaded all the same; or why a file can't be repacked.
 * @typedef {"read" | "unknown" | "not_a_video" | "truncated"
 *   | import("../repack/repack.js").FailureCode} Outcome
 *
 * Width and height are as shown: upright, with square pixels. The codec is null if mediabunny
 * doesn't know it.
 * @typedef {{ codec: string | null, width: number, height: number, fps: number | null,
 *   transfer: string | null, isDolbyOnly: boolean, isMoving: boolean, isEnabled: boolean,
 *   samples: number }} VideoFacts
 * `samples` is the number of pixels in all frames.
 * @typedef {{ channels: number, unsupported: string | null }} AudioFacts
 * `unsupported` is the sample entry of audio that the portal can't convert.
 *
 * @typedef {{ outcome: Outcome, duration_s: number | null, media_share: number,
 *   isEncrypted: boolean, video: VideoFacts | null, hasOtherVideo: boolean,
 *   audio: AudioFacts | null, container: import("./containers.js").Container | null,
 *   isRepacked: boolean, subtitles: number }} Facts
 * `container` is the format of a file that is neither MP4 nor QuickTime, if known.
 * `media_share` is the share of the announced media data that the file contains.
 */

/** Sample entries of encrypted tracks: those of ISO/IEC 23001-7, and of the iTunes Store. */
const ENCRYPTED = /stsd.{12}(encv|enca|drmi|drms)/s;
/** Sample entries of audio that has no decoder. */
const UNSUPPORTED_SOUND = new Set(["apac", "mha1", "mha2", "mhm1", "mhm2", "ac-4"]);
/** Configuration boxes of Dolby Vision. */
const DOLBY_VISION = /dv[cvw]C/;
const DOLBY_RECORD_BYTES = 5;
/** Header of the clean aperture, a box of 40 bytes. */
const CLEAN_APERTURE = "\0\0\0(clap";
const APERTURE_BYTES = 32;
/** Length of the part of the index that is searched for these boxes. */
const SEARCHED_BYTES = 4 * 2 ** 20;
/** Number of frames that are counted to measure the frame rate. */
const COUNTED_FRAMES = 120;
const HEADER_BYTES = 16;
/** Least share of the pixels of the best picture that another one has. */
const LEAST_SHARE = 0.1;

/** @type {Facts} */
const NO_FACTS = {
  ...{ outcome: "unknown", duration_s: null, media_share: 1 },
  ...{ isEncrypted: false, video: null, hasOtherVideo: false, audio: null, container: null },
  ...{ isRepacked: false, subtitles: 0 },
};

/**
 * Inspect a file that will be repacked. Errors are part of the facts.
 * @param {Blob} file @returns {Promise<Facts>}
 */
export async function examineRepacked(file) {
  Logging.level = LogLevel.Silent;
  const input = new Input({ source: new BlobSource(file), formats: FORMATS });
  try {
    await readTracks(input);
    const { pictures: subtitles } = await readMatroska(file);
    return { ...(await factsOf(input, new ArrayBuffer(0), "")), isRepacked: true, subtitles };
  } catch (error) {
    console.info("The file couldn't be inspected in the browser.", error);
    const outcome = error instanceof NotRepacked ? error.code : "unreadable";
    return { ...NO_FACTS, outcome, isRepacked: true };
  } finally {
    input.dispose();
  }
}

/** Inspect a file. Errors are part of the facts. @param {Blob} file @returns {Promise<Facts>} */
export async function examine(file) {
  try {
    const boxes = await readBoxes(file);
    const moov = boxes.find(({ kind }) => kind === "moov");
    const mdat = boxes.findLast(({ kind }) => kind === "mdat");
    if (!moov || moov.end > file.size) {
      // The portal has the same rule. Most recorders write the index last, so a file without one is
      // truncated, unless it is a segment of a stream, which has none.
      const isTruncated = moov || (mdat && !boxes.some(({ kind }) => kind === "moof"));
      if (isTruncated) return { ...NO_FACTS, outcome: "truncated" };
      const firstBytes = new Uint8Array(await file.slice(0, SIGNATURE_BYTES).arrayBuffer());
      return { ...NO_FACTS, outcome: "not_a_video", container: detectContainer(firstBytes) };
    }
    // mediabunny can't parse all of the boxes that are searched here.
    const index = await file.slice(moov.at, moov.at + SEARCHED_BYTES).arrayBuffer();
    const text = new TextDecoder("latin1").decode(index);
    const isEncrypted = ENCRYPTED.test(text);
    if (isEncrypted) return { ...NO_FACTS, outcome: "read", isEncrypted };
    const media_share = mdat ? storedShare(mdat, file) : 1;
    return { ...(await examineTracks(file, index, text)), media_share };
  } catch (error) {
    console.info("The file couldn't be inspected in the browser.", error);
    return NO_FACTS;
  }
}

/**
 * Return whether the video is Dolby Vision that the portal can't convert: profile 5, or profile 10
 * or 20 without a compatible base layer.
 * @param {ArrayBuffer} index @param {string} text the same bytes as Latin-1
 */
function isDolbyOnly(index, text) {
  const at = text.search(DOLBY_VISION) + 4;
  if (at < 4 || at + DOLBY_RECORD_BYTES > index.byteLength) return false;
  const record = new DataView(index, at, DOLBY_RECORD_BYTES);
  const profile = record.getUint8(2) >> 1;
  const compatibility = record.getUint8(4) >> 4;
  return profile === 5 || ((profile === 10 || profile === 20) && compatibility === 0);
}

/** Return the share of a box that the file contains. @param {Box} box @param {Blob} file */
function storedShare({ body_at, end }, file) {
  return Math.min(1, (file.size - body_at) / (end - body_at));
}

/**
 * Top-level box of an MP4 or QuickTime file (ISO/IEC 14496-12). The boxes distinguish a truncated
 * file from a file of another kind. `end` is the end according to the box's header, which is past
 * the end of a truncated file.
 * @typedef {{ kind: string, at: number, body_at: number, end: number }} Box
 */

/**
 * Return the top-level boxes, up to the index or the first invalid box.
 * @param {Blob} file @returns {Promise<Box[]>}
 */
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
    // Stops at the first fragment, because there may be thousands.
    if (kind === "moof" && boxes.some((box) => box.kind === "moov")) break;
    at += size_bytes;
  }
  return boxes;
}

/**
 * Return the size of a box, and of its header.
 * @param {DataView} header @param {number} rest_bytes from the box's start to the end of the file
 */
function sizeOf(header, rest_bytes) {
  const size_bytes = header.getUint32(0);
  if (size_bytes === 1 && header.byteLength === HEADER_BYTES) {
    return { size_bytes: Number(header.getBigUint64(8)), body_bytes: 16 };
  }
  return { size_bytes: size_bytes === 0 ? rest_bytes : size_bytes, body_bytes: 8 };
}

/**
 * Return the facts about an MP4 or QuickTime file.
 * @param {Blob} file @param {ArrayBuffer} index @param {string} text the same bytes as Latin-1
 * @returns {Promise<Facts>}
 */
async function examineTracks(file, index, text) {
  Logging.level = LogLevel.Silent;
  const input = new Input({ source: new BlobSource(file), formats: [MP4, QTFF] });
  try {
    return await factsOf(input, index, text);
  } finally {
    input.dispose();
  }
}

/**
 * Return the facts about a file's tracks.
 * @param {Input} input @param {ArrayBuffer} index of an MP4 @param {string} text the same bytes as
 *   Latin-1
 * @returns {Promise<Facts>}
 */
async function factsOf(input, index, text) {
  const tracks = await input.getTracks();
  if (!tracks.length) return NO_FACTS;
  const videos = [];
  // mediabunny can read some formats only once at a time.
  for (const track of tracks) {
    if (track.isVideoTrack()) videos.push(await videoFacts(track, index, text));
  }
  const [video = null, ...others] = videos.sort(byRank);
  const audioTracks = tracks.filter((track) => track.isAudioTrack());
  return {
    ...NO_FACTS,
    outcome: "read",
    duration_s: await input.getDurationFromMetadata(),
    video,
    hasOtherVideo: others.some((other) => video && isFilmBeside(other, video)),
    audio: await audioFacts(audioTracks),
  };
}

/**
 * Return the facts about a file's audio.
 * @param {import("mediabunny").InputAudioTrack[]} audioTracks
 * @returns {Promise<AudioFacts | null>} those of the first track that can be converted, else of the
 *   first track
 */
async function audioFacts(audioTracks) {
  const facts = await Promise.all(
    audioTracks.map(async (track) => {
      const entry = String(await track.getInternalCodecId());
      const unsupported = UNSUPPORTED_SOUND.has(entry) ? entry : null;
      return { channels: await track.getNumberOfChannels(), unsupported };
    }),
  );
  return facts.find(({ unsupported }) => !unsupported) ?? facts[0] ?? null;
}

/**
 * Order tracks as the portal does: moving pictures first, then enabled tracks, then the most pixels
 * in all frames.
 * @param {VideoFacts} a @param {VideoFacts} b
 */
const byRank = (a, b) =>
  Number(b.isMoving) - Number(a.isMoving) ||
  Number(b.isEnabled) - Number(a.isEnabled) ||
  b.samples - a.samples;

/**
 * Return whether a track is a film too, and no small preview of the best one.
 * @param {VideoFacts} other @param {VideoFacts} best
 */
const isFilmBeside = (other, best) =>
  other.isMoving &&
  other.isEnabled &&
  other.width * other.height >= LEAST_SHARE * best.width * best.height;

/**
 * Return the facts about a video track.
 * @param {import("mediabunny").InputVideoTrack} track
 * @param {ArrayBuffer} index @param {string} text the same bytes as Latin-1
 * @returns {Promise<VideoFacts>}
 */
async function videoFacts(track, index, text) {
  const colours = await track.getColorSpace();
  const coded = { width: await track.getCodedWidth(), height: await track.getCodedHeight() };
  const share = apertureShare(index, text, coded);
  const isTurned = (await track.getRotation()) % 180 === 90;
  const [shareX, shareY] = isTurned ? [share.y, share.x] : [share.x, share.y];
  const packetStats = await track.computePacketStats(COUNTED_FRAMES).catch(() => null);
  const duration_s = (await track.getDurationFromMetadata()) ?? 0;
  const frames = (packetStats?.averagePacketRate ?? 0) * duration_s;
  return {
    codec: await track.getCodec(),
    width: Math.round((await track.getDisplayWidth()) * shareX),
    height: Math.round((await track.getDisplayHeight()) * shareY),
    fps: packetStats?.averagePacketRate || null,
    transfer: colours.transfer ?? null,
    isDolbyOnly: isDolbyOnly(index, text),
    isMoving: (packetStats?.packetCount ?? 0) > 1,
    isEnabled: (await track.getDisposition()).default,
    samples: coded.width * coded.height * frames,
  };
}

/**
 * Return the share of a frame's width and height in its clean aperture (ISO/IEC 14496-12, 12.1.4).
 * @param {ArrayBuffer} index @param {string} text the same bytes as Latin-1
 * @param {{ width: number, height: number }} coded size of the encoded picture
 */
function apertureShare(index, text, coded) {
  const wholeFrame = { x: 1, y: 1 };
  const readTracks = text.indexOf(CLEAN_APERTURE);
  const at = readTracks + CLEAN_APERTURE.length;
  if (readTracks < 0 || at + APERTURE_BYTES > index.byteLength) return wholeFrame;
  const box = new DataView(index, at, APERTURE_BYTES);
  const share = {
    x: box.getInt32(0) / box.getInt32(4) / coded.width,
    y: box.getInt32(8) / box.getInt32(12) / coded.height,
  };
  return share.x > 0 && share.x <= 1 && share.y > 0 && share.y <= 1 ? share : wholeFrame;
}

// Node, in which the tests run, has no global listeners.
globalThis.addEventListener?.("message", async ({ data: { file, isRepacked } }) => {
  postMessage(await (isRepacked ? examineRepacked(file) : examine(file)));
});
