/** Changes of the MP4 (ISO/IEC 14496-12) that the muxer writes, for which it has no options. */

/** Boxes that contain others. */
const CONTAINERS = new Set(["moov", "trak", "mdia", "edts"]);
/** Boxes that begin with the times of creation and change. */
const TIMED = new Set(["mvhd", "tkhd", "mdhd"]);
const FRAGMENT_HEADER_BYTES = 24;
/** Headers of a track's fragment: `traf`, `tfhd`, `tfdt`, and `trun` without its samples. */
const TRACK_HEADER_BYTES = 64;
const SAMPLE_BYTES = 16;
/** The number of chapters has one byte. */
const MOST_CHAPTERS = 255;
/** Flag of `tfhd`: data are found relative to the fragment. */
const BASE_IS_FRAGMENT = 0x20000;
/** Flags of `trun`: data offset, and duration, size, flags and composition offset of each sample. */
const ALL_FIELDS = 0xf01;

/** @typedef {{ kind: string, bytes: Uint8Array, view: DataView }} Box with the view of its content */

/**
 * Return the boxes in a range of bytes.
 * @param {Uint8Array | DataView} bytes @returns {Generator<Box>}
 */
export function* boxesIn({ buffer, byteOffset, byteLength }) {
  const view = new DataView(buffer, byteOffset, byteLength);
  for (let at = 0; at + 8 <= byteLength; ) {
    const size = Math.max(view.getUint32(at), 8);
    const kind = String.fromCharCode(...new Uint8Array(buffer, byteOffset + at + 4, 4));
    const bytes = new Uint8Array(buffer, byteOffset + at, size);
    yield { kind, bytes, view: new DataView(buffer, byteOffset + at + 8, size - 8) };
    at += size;
  }
}

/**
 * Set the times of creation and change to zero, which means unknown, so that the file is the same at
 * each repetition.
 * @param {Uint8Array | DataView} boxes the index, or the content of one of its boxes
 */
export function zeroTimes(boxes) {
  for (const { kind, view } of boxesIn(boxes)) {
    if (CONTAINERS.has(kind)) zeroTimes(view);
    const times_bytes = view.byteLength && view.getUint8(0) === 1 ? 16 : 8;
    if (TIMED.has(kind)) new Uint8Array(view.buffer, view.byteOffset + 4, times_bytes).fill(0);
  }
}

/**
 * Set the durations of edit lists with one edit, which lasts to the end of its track.
 * @param {Uint8Array | DataView} boxes the index, or the content of one of its boxes
 * @param {number} duration in the time scale of the film
 */
export function setDurations(boxes, duration) {
  for (const { kind, view } of boxesIn(boxes)) {
    if (CONTAINERS.has(kind)) setDurations(view, duration);
    if (kind !== "elst" || view.getUint32(4) !== 1) continue;
    if (view.getUint8(0) === 1) view.setBigUint64(8, BigInt(duration));
    else view.setUint32(8, duration);
  }
}

/**
 * Return an index with chapters, in the box of Nero that FFmpeg reads.
 * @param {Uint8Array} index a `moov` without user data
 * @param {readonly import("./matroska.js").Chapter[]} chapters
 */
export function withChapters(index, chapters) {
  const entries = chapters.slice(0, MOST_CHAPTERS);
  if (!entries.length) return index;
  const [{ view }] = /** @type {[Box]} */ ([...boxesIn(index)]);
  const list = entries.flatMap(({ at_s, title }) => {
    const text = new TextEncoder().encode(title).slice(0, 255);
    return [wide(Math.round(at_s * 1e7)), Uint8Array.of(text.length, ...text)];
  });
  const count = Uint8Array.of(entries.length);
  return box("moov", view, box("udta", box("chpl", [0x1000000, 0], count, ...list)));
}

/**
 * Return a fragment whose samples are shown later by a delay. A muxer that knows only the times at
 * which frames are shown gives some of them negative offsets, which FFmpeg takes for a shift of the
 * whole track.
 * @param {Uint8Array} fragment a `moof` @param {Map<number, number>} delays by the track's number, in
 *   its units
 */
export function delayedFragment(fragment, delays) {
  const [{ view: content }] = /** @type {[Box]} */ ([...boxesIn(fragment)]);
  const parts = [...boxesIn(content)].filter(({ kind }) => kind === "traf");
  const tracks = parts.map(({ view }) => readTrack(view));
  const size = tracks.reduce(
    (sum, { samples }) => sum + TRACK_HEADER_BYTES + samples.length * SAMPLE_BYTES,
    FRAGMENT_HEADER_BYTES,
  );
  const moved_bytes = size - fragment.length;
  const changed = tracks.map(({ id, time, data_at, samples }) => {
    const delay = delays.get(id) ?? 0;
    const fields = samples.flatMap(([duration, bytes, flags, offset]) => [
      ...[duration, bytes, flags, offset + delay],
    ]);
    return box(
      "traf",
      box("tfhd", [BASE_IS_FRAGMENT, id]),
      box("tfdt", [0x1000000, ...wide(time)]),
      box("trun", [0x1000000 | ALL_FIELDS, samples.length, data_at + moved_bytes, ...fields]),
    );
  });
  return box("moof", box("mfhd", [0, content.getUint32(12)]), ...changed);
}

/** Read a track's fragment as mediabunny writes it. @param {DataView} view of a `traf` */
function readTrack(view) {
  const [header, time, run] = /** @type {[DataView, DataView, DataView]} */ (
    [...boxesIn(view)].map((box) => box.view)
  );
  const flags = run.getUint32(0) & 0xffffff;
  const has = (/** @type {number} */ flag) => (flags & flag) !== 0;
  const numbers = numbersIn(run, 12);
  const next = () => numbers.next().value ?? 0;
  const firstFlags = has(4) ? next() : null;
  const [id, duration, size, sampleFlags] = [4, 8, 12, 16].map((offset) =>
    header.getUint32(offset),
  );
  /** @type {[number, number, number, number][]} */
  const samples = Array.from({ length: run.getUint32(4) }, (_, index) => [
    has(0x100) ? next() : (duration ?? 0),
    has(0x200) ? next() : (size ?? 0),
    has(0x400) ? next() : ((index === 0 ? firstFlags : null) ?? sampleFlags ?? 0),
    has(0x800) ? next() | 0 : 0,
  ]);
  return { id: id ?? 0, time: Number(time.getBigUint64(4)), data_at: run.getUint32(8), samples };
}

/** @param {DataView} view @param {number} start @returns {Generator<number>} of 32 bits */
function* numbersIn(view, start) {
  for (let at = start; at < view.byteLength; at += 4) yield view.getUint32(at);
}

/**
 * Return a box.
 * @param {string} kind
 * @param {(Uint8Array | DataView | readonly number[])[]} parts bytes, or numbers of 32 bits
 */
export function box(kind, ...parts) {
  const contents = parts.map((part) => (ArrayBuffer.isView(part) ? part : bytesOf(part)));
  const size = contents.reduce((sum, { byteLength }) => sum + byteLength, 8);
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const { buffer, byteOffset, byteLength } of [bytesOf([size, codeOf(kind)]), ...contents]) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += byteLength;
  }
  return bytes;
}

/** Return the number that the four letters of a kind are. @param {string} kind */
export const codeOf = (kind) =>
  [...kind].reduce((code, letter) => code * 256 + letter.charCodeAt(0), 0);

/** Return a number of 64 bits as two of 32. @param {number} number */
const wide = (number) => [Math.floor(number / 2 ** 32), number % 2 ** 32];

/** @param {readonly number[]} numbers of 32 bits */
function bytesOf(numbers) {
  const view = new DataView(new ArrayBuffer(numbers.length * 4));
  for (const [place, number] of numbers.entries()) view.setUint32(place * 4, number);
  return view;
}
