/**
 * Remux of a file to fragmented MP4, packet by packet. Pure of the page: it reads a Blob, and writes
 * the same bytes at each repetition, so that parts which storage already has count. Only as much as
 * one group of pictures is held in memory.
 */

import * as media from "mediabunny";
import { boxesIn, delayedFragment, setDurations, withChapters, zeroTimes } from "./boxes.js";
import { readCues } from "./cues.js";
import { readMatroska } from "./matroska.js";
import { textFragment, withTextTracks } from "./text-track.js";

/**
 * Still of a film of sound alone, in JSON, because an upload that continues needs the same one: key
 * frames that take turns, because two of the same id may not follow each other. `string` is the full
 * name of the codec; bytes are in Base64.
 * @typedef {{ codec: "avc" | "vp9", string: string, width: number, height: number,
 *   description: string, colours?: VideoColorSpaceInit, frames: string[] }} Still
 */
/**
 * Code of a failure: "unreadable" (not parsed), "no_tracks", "unsupported_codec" (MP4 can't carry
 * it), "no_encoder" (the browser makes no picture for sound alone), "too_much" (key frames are too
 * far apart).
 * @typedef {"unreadable" | "no_tracks" | "unsupported_codec" | "no_encoder" | "too_much"} FailureCode
 */
/**
 * Receiver of the result. `write` resolves when it has used the bytes and more is wanted; `report` gets the share of the source
 * that was read.
 * @typedef {{ write: (data: Uint8Array) => Promise<void>, report: (share: number) => void,
 *   makeStill: (tags: media.MetadataTags) => Promise<Still | null> }} Receiver
 */
/** @typedef {media.InputVideoTrack | media.InputAudioTrack} Track */
/** Part of the film that is kept; it ends before `end_s`. @typedef {{ start_s: number, end_s: number }} Trim */

/** Formats that are read. Playlists are not, because they name other files. */
export const FORMATS = [
  ...[media.MATROSKA, media.WEBM, media.MPEG_TS, media.MP4, media.QTFF],
  ...[media.OGG, media.MP3, media.FLAC, media.WAVE, media.ADTS],
];
/** Time scales as fine as the source's are exact, and players expect at least this. */
const LEAST_TIMESCALE = 10_000;
const MOST_TIMESCALE = 1_000_000;
/** Time for which a still is shown, after which players can seek to the next. */
const STILL_S = 2;
/** Packets from whose order that of the whole track is known, and most bytes of them. */
const EXAMINED_PACKETS = 300;
const EXAMINED_BYTES = 16 * 2 ** 20;
/** Most frames that are decoded between one and another one that is shown before it. */
const MOST_REORDERED = 16;
/** Time of the sound that is decoded, but not heard, before a part of the film. */
const WARM_UP_S = 0.1;
/** Difference that is no unit of any time scale. */
const ROUNDING_S = 1e-6;
/** Time scale of edit lists' durations, as mediabunny has it. */
const MOVIE_TIMESCALE = 57_600;
const METADATA = { metadataOnly: true };
/** Key frames are sometimes marked wrongly. */
const VERIFIED = { verifyKeyPackets: true };
/** Bytes of the source that are cached. Files are read in order, most of them in large pieces. */
const CACHED_BYTES = 2 ** 20;
/** Bytes of packets that wait for the end of their group of pictures. */
const MOST_WAITING_BYTES = 160 * 2 ** 20;

/** A file that can't be repacked. */
export class NotRepacked extends Error {
  /** @param {FailureCode} code @param {unknown} [cause] */
  constructor(code, cause) {
    super(`not repacked: ${code}`, { cause });
    this.code = code;
  }
}

/**
 * Repack a file, or a part of it: packets are copied from the key frame before its start, and the
 * film's edit lists begin and end with its frames.
 * @param {Blob} file @param {Receiver} receiver @param {Trim | null} [trim]
 * @throws {NotRepacked} or the error of a read
 */
export async function repack(file, receiver, trim = null) {
  media.Logging.level = media.LogLevel.Silent;
  const input = new media.Input({
    source: new media.BlobSource(file, { useStreamReader: false, maxCacheSize: CACHED_BYTES }),
    formats: FORMATS,
  });
  try {
    const tracks = await readTracks(input);
    const still = await stillOf(input, tracks, receiver);
    const matroska = await readMatroska(file);
    const readers = await openReaders(tracks, matroska.delays_s);
    const span = await spanOf(readers, trim);
    if (trim) for (const reader of readers) await reader.seek(span);
    const film = new Film(file.size, span, receiver);
    film.chapters = chaptersIn(matroska.chapters, span);
    film.texts = matroska.texts;
    await film.make(readers, still);
    // Subtitles come last: they stand between the media, which are not read twice at a time.
    if (film.texts.length) {
      const cues = await readCues(file, matroska, () => receiver.report(1));
      await film.addTexts(cues.map((track) => cuesIn(track, span)));
    }
  } catch (error) {
    // Reading a file that has changed fails likewise.
    if (error instanceof NotRepacked || error instanceof DOMException) throw error;
    throw new NotRepacked("unreadable", error);
  } finally {
    input.dispose();
  }
}

/**
 * Return the tracks of a file, all of which MP4 carries.
 * @param {media.Input} input @returns {Promise<Track[]>}
 */
export async function readTracks(input) {
  const all = await input.getTracks();
  const tracks = /** @type {Track[]} */ (
    all.filter((track) => track.isVideoTrack() || track.isAudioTrack())
  );
  if (!tracks.length) throw new NotRepacked("no_tracks");
  const carried = new Set(/** @type {(string | null)[]} */ (format().getSupportedCodecs()));
  for (const track of tracks) {
    if (!carried.has(await track.getCodec())) throw new NotRepacked("unsupported_codec");
  }
  return tracks;
}

/** @param {media.Input} input @param {Track[]} tracks @param {Receiver} receiver */
async function stillOf(input, tracks, { makeStill }) {
  if (tracks.some((track) => track.isVideoTrack())) return null;
  const still = await makeStill(await input.getMetadataTags());
  if (!still) throw new NotRepacked("no_encoder");
  return still;
}

const format = () => new media.Mp4OutputFormat({ fastStart: "fragmented" });

/** Track of the source with its next packet, and the source of the film's track. */
class Reader {
  /** Next packets, in the order of decoding; without any at the end. @type {media.EncodedPacket[]} */
  #ahead = [];
  /** Latest time of a packet in the film. */
  #latest_s = Number.NEGATIVE_INFINITY;
  /** Latest time of a packet in the source. */
  #reached_s = Number.NEGATIVE_INFINITY;
  #end_s = Number.POSITIVE_INFINITY;

  /**
   * @param {Track} track @param {media.EncodedPacket} first
   * @param {media.EncodedVideoPacketSource | media.EncodedAudioPacketSource} target
   * @param {{ decoderConfig?: any }} meta
   * @param {number} early_s by how much the track is shown earlier than its packets say
   */
  constructor(track, first, target, meta, early_s) {
    this.track = track;
    this.first = first;
    this.target = target;
    this.meta = meta;
    /** Time scale of the film's track. */
    this.timescale = 1;
    /** Units by which frames are decoded before they are shown. */
    this.delay = 0;
    this.early_s = early_s;
    this.sink = new media.EncodedPacketSink(track);
    /** Packets that are still to be read; some formats can be read only once at a time. */
    this.packets = this.sink.packets(first, undefined, VERIFIED);
  }

  /**
   * Open a track.
   * @param {Track} track @param {number} [early_s]
   * @returns {Promise<Reader | null>} null if it is empty
   */
  static async open(track, early_s = 0) {
    const first = await new media.EncodedPacketSink(track).getFirstKeyPacket(VERIFIED);
    if (!first) return null;
    const codec = /** @type {any} */ (await track.getCodec());
    const target = track.isVideoTrack()
      ? new media.EncodedVideoPacketSource(codec)
      : new media.EncodedAudioPacketSource(codec);
    const decoderConfig = (await track.getDecoderConfig()) ?? undefined;
    const reader = new Reader(track, first, target, { decoderConfig }, early_s);
    if (track.isVideoTrack()) reader.timescale = timescaleOf(await track.getTimeResolution());
    return reader;
  }

  /** Begin with what is needed for a part of the film, and end with it. @param {Span} span */
  async seek({ start_s, end_s }) {
    const at_s = start_s + this.early_s + ROUNDING_S;
    // A decoder of sound needs the packets before the first one that is heard.
    const first = this.track.isVideoTrack()
      ? await this.sink.getKeyPacket(at_s, VERIFIED)
      : await this.sink.getPacket(at_s - WARM_UP_S);
    this.#end_s = end_s - ROUNDING_S;
    this.packets = this.sink.packets(first ?? this.first, undefined, VERIFIED);
  }

  /** Read the first packets, and how their order differs from that of their times. */
  async begin() {
    if (this.track.isVideoTrack()) {
      await this.#readAhead(EXAMINED_PACKETS);
      this.delay = Math.round(reorderingOf_s(this.#ahead) * this.timescale);
    }
    await this.#advance();
  }

  /** @param {number} count number of packets to have, unless they are many bytes */
  async #readAhead(count) {
    let bytes = this.#ahead.reduce((sum, packet) => sum + packet.byteLength, 0);
    while (this.#ahead.length < count && (bytes < EXAMINED_BYTES || !this.#ahead.length)) {
      const { value } = await this.packets.next();
      if (!value) return;
      this.#ahead.push(value);
      bytes += value.byteLength;
    }
  }

  async #advance() {
    await this.#readAhead(this.#end_s < Number.POSITIVE_INFINITY ? MOST_REORDERED : 1);
    // Frames that are decoded later may be shown earlier, and the order of times must have no holes.
    const end_s = Math.max(this.#end_s + this.early_s, this.#reached_s);
    if (this.#ahead.every(({ timestamp }) => timestamp >= end_s)) this.#ahead = [];
  }

  /** Next packet; none at the end. */
  get packet() {
    return this.#ahead[0];
  }

  /** Time at which the next packet is shown. */
  get at_s() {
    return this.packet ? this.packet.timestamp - this.early_s : Number.POSITIVE_INFINITY;
  }

  /** Copy the next packet. @param {number} shift_s subtracted from its time */
  async copy(shift_s) {
    const timestamp = this.at_s - shift_s - this.delay / this.timescale;
    const packet = this.#ahead.shift();
    if (!packet) return;
    // MP4 has no group of pictures that begins before the end of the one before it.
    const type = timestamp < this.#latest_s ? "delta" : packet.type;
    this.#latest_s = Math.max(this.#latest_s, timestamp);
    this.#reached_s = Math.max(this.#reached_s, packet.timestamp);
    await this.target.add(packet.clone({ timestamp, type }), this.meta);
    await this.#advance();
    if (!this.packet) this.target.close();
  }
}

/** @param {Track[]} tracks @param {Map<number, number>} delays_s by the track's number in the source */
async function openReaders(tracks, delays_s) {
  const readers = [];
  for (const track of tracks) {
    const reader = await Reader.open(track, delays_s.get(track.id));
    if (reader) readers.push(reader);
  }
  if (!readers.length) throw new NotRepacked("no_tracks");
  return readers;
}

/**
 * Span of the source that becomes the film. `length_s` is null for all of the source. The end is
 * infinite if it is that of the source.
 * @typedef {{ start_s: number, end_s: number, length_s: number | null }} Span
 */

/**
 * Return the span of a part of the film, which begins and ends with a frame.
 * @param {Reader[]} readers @param {Trim | null} trim @returns {Promise<Span>}
 */
async function spanOf(readers, trim) {
  const firsts_s = readers.map(({ first, early_s }) => first.timestamp - early_s);
  // Times below 0 mean that a packet isn't shown.
  const zero_s = Math.max(Math.min(...firsts_s), 0);
  if (!trim) return { start_s: zero_s, end_s: Number.POSITIVE_INFINITY, length_s: null };
  const { sink, early_s } = /** @type {Reader} */ (
    readers.find((reader) => reader.track.isVideoTrack()) ?? readers[0]
  );
  const frameAt = (/** @type {number} */ at_s) =>
    sink.getPacket(zero_s + at_s + early_s + ROUNDING_S, METADATA);
  const first = await frameAt(trim.start_s);
  const start_s = first ? first.timestamp - early_s : zero_s;
  const end = await frameAt(trim.end_s);
  const isLast = !end || zero_s + trim.end_s >= end.timestamp - early_s + end.duration - ROUNDING_S;
  const end_s = isLast ? Number.POSITIVE_INFINITY : end.timestamp - early_s;
  return { start_s, end_s, length_s: trim.end_s - trim.start_s };
}

class Film {
  /** @type {import("./matroska.js").Chapter[]} */
  chapters = [];
  /** Tracks of subtitles. @type {import("./matroska.js").TextTrack[]} */
  texts = [];
  #fragments = 0;
  /** Bytes of packets that were added, and of MP4 that was written. */
  #added_bytes = 0;
  #written_bytes = 0;
  /** Time by which frames are decoded before they are shown, by the track's number in the film. */
  #delays = /** @type {Map<number, number>} */ (new Map());

  /** @param {number} size_bytes of the source @param {Span} span @param {Receiver} receiver */
  constructor(size_bytes, span, { write, report }) {
    this.size_bytes = size_bytes;
    this.span = span;
    this.write = write;
    this.report = report;
    const writable = new WritableStream({
      write: (/** @type {Uint8Array} */ boxes) => this.#writeBoxes(boxes),
    });
    this.output = new media.Output({
      format: format(),
      target: new media.AppendOnlyStreamTarget(writable),
    });
  }

  /** Write whole boxes, as players need them. @param {Uint8Array} boxes as the muxer has them */
  async #writeBoxes(boxes) {
    for (const { kind, bytes } of boxesIn(boxes)) {
      this.#written_bytes += bytes.length;
      if (kind === "moof") this.#fragments += 1;
      if (kind === "moov") await this.write(this.#indexOf(bytes));
      else if (kind === "moof") await this.write(delayedFragment(bytes, this.#delays));
      // The index of fragments has the positions of the muxer.
      else if (kind !== "mfra") await this.write(bytes);
    }
    free(boxes);
  }

  /** Return the film's index. @param {Uint8Array} index that of the muxer */
  #indexOf(index) {
    zeroTimes(index);
    const duration = Math.round((this.span.end_s - this.span.start_s) * MOVIE_TIMESCALE);
    if (Number.isFinite(duration)) setDurations(index, duration);
    const withTexts = this.texts.length ? withTextTracks(index, this.texts) : index;
    return withChapters(withTexts, this.chapters);
  }

  /** Make the film. @param {Reader[]} readers @param {Still | null} still shown beside sound alone */
  async make(readers, still) {
    for (const reader of readers) {
      await reader.begin();
      if (reader.packet) await this.#addTrack(reader);
    }
    const stills = still && new Stills(still);
    if (stills) this.output.addVideoTrack(stills.target);
    await this.output.start();
    // Only a track that begins before the film gets an edit list, which can have an end.
    const shift_s = this.span.start_s + (this.span.length_s === null ? 0 : ROUNDING_S);
    for (;;) {
      const reader = readers.reduce((next, other) => (other.at_s < next.at_s ? other : next));
      if (!reader.packet) break;
      await stills?.showUntil(reader.at_s - shift_s);
      this.#count(reader.packet.byteLength, reader.at_s);
      await reader.copy(shift_s);
    }
    await stills?.end();
    await this.output.finalize();
  }

  /** Write all subtitles, after the film. @param {import("./cues.js").Cue[][]} cues of each track */
  async addTexts(cues) {
    const first = this.output.tracks.length + 1;
    for (const box of textFragment(cues, first, this.#fragments + 1)) await this.write(box);
  }

  /** @param {Reader} reader */
  async #addTrack({ track, target, timescale: frameRate, delay }) {
    const metadata = {
      languageCode: await track.getLanguageCode(),
      name: (await track.getName()) ?? undefined,
      disposition: await track.getDisposition(),
    };
    if (target instanceof media.EncodedAudioPacketSource) {
      return this.output.addAudioTrack(target, metadata);
    }
    const video = /** @type {media.InputVideoTrack} */ (track);
    // The frame rate is that of the time scale, in which the source's times are whole numbers.
    const transformationMatrix = await video.getTransformationMatrix();
    this.output.addVideoTrack(target, { ...metadata, frameRate, transformationMatrix });
    this.#delays.set(this.output.tracks.length, delay);
  }

  /** Count a packet. @param {number} bytes @param {number} at_s */
  #count(bytes, at_s) {
    this.#added_bytes += bytes;
    if (this.#added_bytes - this.#written_bytes > MOST_WAITING_BYTES) {
      throw new NotRepacked("too_much");
    }
    const { start_s, length_s } = this.span;
    const share = length_s ? (at_s - start_s) / length_s : this.#added_bytes / this.size_bytes;
    this.report(Math.min(Math.max(share, 0), 1));
  }
}

/**
 * Return the chapters of a film; the one in which it begins starts with it.
 * @param {import("./matroska.js").Chapter[]} chapters of the source @param {Span} span
 */
function chaptersIn(chapters, { start_s, end_s }) {
  return chapters
    .filter(({ at_s }, index) => at_s < end_s && (chapters[index + 1]?.at_s ?? Infinity) > start_s)
    .map(({ at_s, title }) => ({ at_s: Math.max(at_s - start_s, 0), title }));
}

/**
 * Return the cues of a part of the source, in the time of the film.
 * @param {import("./cues.js").Cue[]} cues @param {Span} span
 */
function cuesIn(cues, { start_s, end_s }) {
  return cues
    .filter((cue) => cue.text && cue.start_s < Math.min(cue.end_s, end_s) && cue.end_s > start_s)
    .map(({ start_s: from_s, end_s: until_s, text }) => ({
      start_s: Math.max(from_s - start_s, 0),
      end_s: Math.min(until_s, end_s) - start_s,
      text,
    }));
}

/**
 * Free the memory of bytes at once. Without it, browsers keep some tens of megabytes of such buffers
 * until they clean up, which takes much of the time. Older browsers can't.
 * @param {Uint8Array} bytes
 */
function free({ buffer }) {
  /** @type {{ transfer?: (size: number) => void }} */ (buffer).transfer?.(0);
}

/** Track with stills for the time of the sound. */
class Stills {
  #count = 0;
  #end_s = 0;

  /** @param {Still} still */
  constructor({ codec, string, width, height, description, colours, frames }) {
    const decoderConfig = {
      ...{ codec: string, codedWidth: width, codedHeight: height, colorSpace: colours },
      description: description ? fromBase64(description) : undefined,
    };
    this.target = new media.EncodedVideoPacketSource(codec);
    this.meta = { decoderConfig };
    this.frames = frames.map(fromBase64);
  }

  /** Show stills until a time. @param {number} at_s */
  async showUntil(at_s) {
    this.#end_s = at_s;
    while ((this.#count + 1) * STILL_S <= at_s) await this.#add(STILL_S);
  }

  /** Show the last still. */
  async end() {
    await this.#add(Math.max(this.#end_s - this.#count * STILL_S, 0.1));
    this.target.close();
  }

  /** @param {number} duration_s */
  async #add(duration_s) {
    const data = /** @type {Uint8Array} */ (this.frames[this.#count % this.frames.length]);
    const packet = new media.EncodedPacket(data, "key", this.#count * STILL_S, duration_s);
    this.#count += 1;
    await this.target.add(packet, this.meta);
  }
}

/** @param {string} text */
const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Return a time scale in which multiples of the source's unit are exact. @param {number} rate */
function timescaleOf(rate) {
  let timescale = rate;
  while (timescale < LEAST_TIMESCALE) timescale *= 2;
  return Math.min(timescale, MOST_TIMESCALE);
}

/**
 * Return how much later than in the order of their times packets are decoded at most, as the muxer
 * derives the order from the times of a group of pictures.
 * @param {readonly media.EncodedPacket[]} packets
 */
function reorderingOf_s(packets) {
  /** @type {number[][]} */
  const groups = [];
  for (const { timestamp, type } of packets) {
    if (type === "key") groups.push([]);
    groups.at(-1)?.push(timestamp);
  }
  const lates_s = groups.flatMap((times_s) => {
    const sorted_s = times_s.toSorted((a, b) => a - b);
    return times_s.map((at_s, index) => (sorted_s[index] ?? at_s) - at_s);
  });
  return Math.max(...lates_s);
}
