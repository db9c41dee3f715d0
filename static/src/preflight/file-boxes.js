/**
 * Walks the boxes of an MP4 or QuickTime file (ISO/IEC 14496-12): tells a cut-off file from one of
 * another kind, and copies the file's index without its sample tables, which are most of it.
 *
 * Whatever the file claims, a bounded number of bytes is read: at most MAX_READS windows and
 * MAX_KEPT_BYTES of boxes, about 10 MiB in all.
 */

const WINDOW_BYTES = 16_384;
const MAX_READS = 400;
const MAX_BOXES = 4000;
const MAX_BOX_BYTES = 262_144;
const MAX_KEPT_BYTES = 4_194_304;

/** Boxes entered on the way from the index down to the descriptions of the tracks. */
/** @type {Record<string, string>} */
const INSIDE = { moov: "trak", trak: "mdia", mdia: "minf", minf: "stbl" };
/** What describes a track or the whole. Everything else is left out. */
const KEPT = new Set(["mvhd", "tkhd", "mdhd", "hdlr", "stsd", "cmov"]);
/** Sample sizes; their number is the number of frames. */
const SIZES = "stsz";

/** The file has more boxes, or larger ones, than are looked at. */
export class OutOfBudget extends Error {}

/** @typedef {{ kind: string, at: number, body: number, end: number }} Box */

class Reader {
  #window = new DataView(new ArrayBuffer(0));
  #windowAt = 0;
  #reads = 0;
  #boxes = 0;
  #kept_bytes = 0;

  /** @param {Blob} file */
  constructor(file) {
    this.file = file;
  }

  /**
   * @param {number} at
   * @param {number} size_bytes at most a window
   * @returns {Promise<DataView>} shorter at the end of the file
   */
  async peek(at, size_bytes) {
    const end = Math.min(at + size_bytes, this.file.size);
    if (at < this.#windowAt || end > this.#windowAt + this.#window.byteLength) {
      this.#reads += 1;
      if (this.#reads > MAX_READS) throw new OutOfBudget();
      this.#window = new DataView(await this.file.slice(at, at + WINDOW_BYTES).arrayBuffer());
      this.#windowAt = at;
    }
    const offset = this.#window.byteOffset + at - this.#windowAt;
    return new DataView(this.#window.buffer, offset, Math.max(0, end - at));
  }

  /** @param {Box} box @returns {Promise<Uint8Array<ArrayBuffer>>} the whole box */
  async copy({ at, end }) {
    this.#kept_bytes += end - at;
    if (end - at > MAX_BOX_BYTES || this.#kept_bytes > MAX_KEPT_BYTES) throw new OutOfBudget();
    return new Uint8Array(await this.file.slice(at, end).arrayBuffer());
  }

  /**
   * The box at this place; null where there is none.
   * @param {number} at
   * @param {number} limit where the box around it ends
   * @returns {Promise<Box | null>}
   */
  async box(at, limit) {
    if (at + 8 > Math.min(limit, this.file.size)) return null;
    this.#boxes += 1;
    if (this.#boxes > MAX_BOXES) throw new OutOfBudget();
    const header = await this.peek(at, 16);
    let size_bytes = header.getUint32(0);
    let body = at + 8;
    if (size_bytes === 1 && header.byteLength === 16) {
      size_bytes = Number(header.getBigUint64(8));
      body = at + 16;
    } else if (size_bytes === 0) size_bytes = limit - at;
    if (size_bytes < body - at) return null;
    return { kind: name(header), at, body, end: at + size_bytes };
  }
}

/** @param {DataView} header */
function name(header) {
  return String.fromCharCode(...[4, 5, 6, 7].map((offset) => header.getUint8(offset)));
}

/**
 * What the outermost boxes tell. `index` is the file's `moov` box; `media_share` is how much of
 * the media that a box announces is inside the file.
 * @typedef {{ index: Box | null, hasMedia: boolean, hasFragments: boolean, brand: string,
 *   media_share: number }} Outline
 */

/** @param {Reader} reader @returns {Promise<Outline>} */
async function readOutline(reader) {
  /** @type {Outline} */
  const outline = { index: null, hasMedia: false, hasFragments: false, brand: "", media_share: 1 };
  const size_bytes = reader.file.size;
  for (let at = 0; ; ) {
    const box = await reader.box(at, size_bytes);
    if (!box) return outline;
    if (box.kind === "moov") outline.index ??= box;
    if (box.kind === "moof") outline.hasFragments = true;
    if (box.kind === "ftyp") outline.brand = await brandOf(reader, box);
    if (box.kind === "mdat") {
      outline.hasMedia = true;
      if (box.end > size_bytes) {
        outline.media_share = (size_bytes - box.body) / (box.end - box.body);
      }
    }
    // Fragments follow by the thousand.
    if (outline.index && outline.hasFragments) return outline;
    at = box.end;
  }
}

/** @param {Reader} reader @param {Box} box */
async function brandOf(reader, box) {
  const view = await reader.peek(box.body, 4);
  return view.byteLength < 4
    ? ""
    : String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset, 4));
}

/**
 * `sampleCounts` is each track's number of frames, or of samples of sound, by the track's id.
 * @typedef {{ bytes: Uint8Array<ArrayBuffer>, sampleCounts: Map<number, number> }} Slim
 */

/** Copies an index with what describes the tracks in it. */
class Slimmer {
  /** @type {Map<number, number>} */
  sampleCounts = new Map();
  #trackId = 0;

  /** @param {Reader} reader */
  constructor(reader) {
    this.reader = reader;
  }

  /** @param {Box} parent @returns {Promise<Uint8Array<ArrayBuffer>[]>} the box in pieces */
  async copy(parent) {
    const pieces = [];
    for (let at = parent.body; ; ) {
      const box = await this.reader.box(at, parent.end);
      if (!box) break;
      if (box.kind === "tkhd") this.#trackId = await this.#idIn(box);
      if (box.kind === SIZES) await this.#count(box);
      else if (KEPT.has(box.kind)) pieces.push(await this.reader.copy(box));
      else if (INSIDE[parent.kind] === box.kind) pieces.push(...(await this.copy(box)));
      at = box.end;
    }
    const size_bytes = pieces.reduce((sum, piece) => sum + piece.length, 8);
    return [header(size_bytes, parent.kind), ...pieces];
  }

  /** @param {Box} box @returns {Promise<number>} the track's id, or 0 */
  async #idIn({ body }) {
    const view = await this.reader.peek(body, 24);
    if (view.byteLength < 24) return 0;
    return view.getUint32(view.getUint8(0) === 1 ? 20 : 12);
  }

  /** @param {Box} box */
  async #count({ body }) {
    const view = await this.reader.peek(body, 12);
    if (view.byteLength === 12) this.sampleCounts.set(this.#trackId, view.getUint32(8));
  }
}

/** @param {number} size_bytes @param {string} kind */
function header(size_bytes, kind) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setUint32(0, size_bytes);
  for (let at = 0; at < 4; at += 1) bytes[4 + at] = kind.charCodeAt(at);
  return bytes;
}

/**
 * @param {Blob} file
 * @returns {Promise<{ outline: Outline, slim: Slim | null }>} `slim` is a file of its own: an
 *   index of the same tracks without samples
 * @throws {OutOfBudget}
 */
export async function readBoxes(file) {
  const reader = new Reader(file);
  const outline = await readOutline(reader);
  const { index } = outline;
  if (!index || index.end > file.size) return { outline, slim: null };
  const slimmer = new Slimmer(reader);
  const pieces = await slimmer.copy(index);
  const type = new Uint8Array([...header(16, "ftyp"), ...brandBytes(outline.brand), 0, 0, 0, 0]);
  return {
    outline,
    slim: { bytes: joined([type, ...pieces]), sampleCounts: slimmer.sampleCounts },
  };
}

/** @param {string} brand */
function brandBytes(brand) {
  return [...(brand || "qt  ")].map((letter) => letter.charCodeAt(0) & 0xff);
}

/** @param {Uint8Array[]} pieces */
function joined(pieces) {
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
