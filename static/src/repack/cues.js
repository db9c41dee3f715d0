/** Subtitles of a Matroska file, which stand between its media data. */

import {
  CLUSTER,
  elementAt,
  HEADER_BYTES,
  lengthAt,
  numberOf,
  SEGMENT,
  variableAt,
  viewOf,
} from "./ebml.js";

const ID = {
  ...{ clusterTime: 0xe7, duration: 0x9b },
  ...{ blockGroup: 0xa0, block: 0xa1, simpleBlock: 0xa3 },
};
const PARENTS = new Set([SEGMENT, CLUSTER, ID.blockGroup]);
const READ_BYTES = 4 * 2 ** 20;
/** Longest block that is read; a longer one is no text. */
const MOST_TEXT_BYTES = 64 * 2 ** 10;
/** All text that is kept, which is that of hundreds of films. */
const MOST_CHARACTERS = 16 * 2 ** 20;
/** Time for which a text without a duration is shown. */
const DEFAULT_S = 4;
/** Time and flags of a block, after the number of its track. */
const BLOCK_HEADER_BYTES = 3;

/** Text with its times in the film. @typedef {{ start_s: number, end_s: number, text: string }} Cue */

/**
 * Read the whole file, and return the cues of its text tracks without styles, up to a fault.
 * @param {Blob} file @param {import("./matroska.js").MatroskaFacts} facts
 * @param {() => void} onProgress called for each 4 MiB
 * @returns {Promise<Cue[][]>} a list for each of `facts.texts`, in the file's order
 */
export async function readCues(file, { texts, unit_s }, onProgress) {
  /** @type {Cue[][]} */
  const cues = texts.map(() => []);
  let characters = 0;
  let cluster_s = 0;
  /** Cue whose duration may follow. @type {Cue | null} */
  let latest = null;
  for await (const { id, body } of elementsOf(file, onProgress)) {
    if (id === ID.clusterTime) cluster_s = numberOf(body) * unit_s;
    if (id === ID.blockGroup) latest = null;
    if (id === ID.duration && latest) latest.end_s = latest.start_s + numberOf(body) * unit_s;
    if (id !== ID.block && id !== ID.simpleBlock) continue;
    const { number, time, data } = readBlock(body);
    const index = texts.findIndex((track) => track.number === number);
    const track = texts[index];
    if (!track) continue;
    const text = plainText(track.codec, await decoded(data, track.isCompressed));
    const start_s = cluster_s + time * unit_s;
    latest = { start_s, end_s: start_s + DEFAULT_S, text };
    cues[index]?.push(latest);
    characters += text.length;
    if (characters > MOST_CHARACTERS) break;
  }
  return cues;
}

/** Return the parts of a block; number 0 if it is damaged. @param {DataView} block */
function readBlock(block) {
  const number_bytes = block.byteLength ? lengthAt(block, 0) : 0;
  const start = number_bytes + BLOCK_HEADER_BYTES;
  if (start > block.byteLength) return { number: 0, time: 0, data: block };
  const data = viewOf(block, start, block.byteLength);
  return { number: variableAt(block, 0), time: block.getInt16(number_bytes), data };
}

/**
 * Yield the elements of the file up to the first invalid one, each parent before its children.
 * Those that are longer than a text have no body.
 * @param {Blob} file @param {() => void} onProgress
 * @returns {AsyncGenerator<{ id: number, body: DataView }, void>}
 */
async function* elementsOf(file, onProgress) {
  const window = new Window(file, onProgress);
  for (let at = 0; ; ) {
    if (!window.has(at, HEADER_BYTES)) await window.moveTo(at);
    const element = window.elementAt(at);
    if (!element) return;
    const { id, start, end } = element;
    const isParent = PARENTS.has(id);
    const isSkipped = isParent || end - start > MOST_TEXT_BYTES;
    yield { id, body: await window.read(start, isSkipped ? start : end) };
    at = isParent ? start : end;
  }
}

/** @param {DataView} data @param {boolean} isCompressed */
async function decoded(data, isCompressed) {
  if (!isCompressed) return new TextDecoder().decode(data);
  const stream = new Blob([/** @type {DataView<ArrayBuffer>} */ (data)]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("deflate"))).text();
}

/** Return a text without its styles. @param {string} codec @param {string} text */
function plainText(codec, text) {
  if (/ASS|SSA/.test(codec)) {
    // Eight fields precede the text.
    const line = text
      .split(",")
      .slice(8)
      .join(",")
      .replaceAll(/\{[^}]*\}/g, "");
    return line
      .replaceAll(/\\[Nn]/g, "\n")
      .replaceAll("\\h", " ")
      .trim();
  }
  // In WebM, an identifier and settings have a line each.
  const lines = codec.startsWith("D_") ? text.split("\n").slice(2).join("\n") : text;
  const plain = lines.replaceAll(/<\/?[a-z][^>]*>|\{\\[^}]*\}/gi, "").trim();
  if (!codec.includes("WEBVTT")) return plain;
  return plain.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

/** Part of a file that is held in memory, and moves with what is read. */
class Window {
  #at = 0;
  #view = new DataView(new ArrayBuffer(0));

  /** @param {Blob} file @param {() => void} onMove */
  constructor(file, onMove) {
    this.file = file;
    this.onMove = onMove;
  }

  /** @param {number} at @param {number} bytes */
  has(at, bytes) {
    return at >= this.#at && at + bytes <= this.#at + this.#view.byteLength;
  }

  /** @param {number} at */
  async moveTo(at) {
    this.#view = new DataView(await this.file.slice(at, at + READ_BYTES).arrayBuffer());
    this.#at = at;
    this.onMove();
  }

  /** Return the element at a place in the window, with its places in the file. @param {number} at */
  elementAt(at) {
    const element = elementAt(this.#view, at - this.#at);
    if (!element) return null;
    return { id: element.id, start: element.start + this.#at, end: element.end + this.#at };
  }

  /** Return a range of the file that is shorter than the window. @param {number} start @param {number} end */
  async read(start, end) {
    if (!this.has(start, end - start)) await this.moveTo(start);
    const bytes = this.#view.byteLength;
    return viewOf(this.#view, Math.min(start - this.#at, bytes), Math.min(end - this.#at, bytes));
  }
}
