/** Facts in the head of a Matroska or WebM file (RFC 9559) that mediabunny doesn't read. */

import { CLUSTER, elementAt, numberOf, SEGMENT, viewOf } from "./ebml.js";

/** Length of the part of the file that is searched. */
const SEARCHED_BYTES = 4 * 2 ** 20;
const SIGNATURE = 0x1a45dfa3;
const ID = {
  ...{ info: 0x1549a966, unit: 0x2ad7b1 },
  ...{ tracks: 0x1654ae6b, track: 0xae, number: 0xd7, type: 0x83, codec: 0x86, name: 0x536e },
  ...{ language: 0x22b59c, codecDelay: 0x56aa },
  ...{ encodings: 0x6d80, encoding: 0x6240, compression: 0x4254, encryption: 0x5035 },
  ...{ compressed: 0x5034 },
  ...{ chapters: 0x1043a770, edition: 0x45b9, chapter: 0xb6, chapterStart: 0x91 },
  ...{ chapterDisplay: 0x80, chapterTitle: 0x85 },
};
const PARENTS = new Set([
  ...[SEGMENT, ID.info, ID.tracks, ID.track, ID.encodings, ID.encoding, ID.compressed],
  ...[ID.chapters, ID.edition, ID.chapter, ID.chapterDisplay],
]);
const SUBTITLES = 0x11;
/** Codecs of subtitles that consist of text. */
const TEXT = /^(S_(TEXT|ASS|SSA)|D_WEBVTT)/;

/** @typedef {{ at_s: number, title: string }} Chapter */
/**
 * Track of subtitles that consist of text. `number` is that of its blocks, and `language` an ISO 639-2
 * code.
 * @typedef {{ number: number, codec: string, language: string, name: string,
 *   isCompressed: boolean }} TextTrack
 */
/**
 * `delays_s` has the time by which each track is shown earlier than its packets say, by its number.
 * `pictures` counts subtitles that aren't text. `unit_s` is the unit of times in blocks, in seconds.
 * @typedef {{ delays_s: Map<number, number>, chapters: Chapter[], texts: TextTrack[],
 *   pictures: number, unit_s: number }} MatroskaFacts
 */

/** Return the facts; those of another file are empty. @param {Blob} file @returns {Promise<MatroskaFacts>} */
export async function readMatroska(file) {
  const view = new DataView(await file.slice(0, SEARCHED_BYTES).arrayBuffer());
  const isMatroska = view.byteLength >= 4 && view.getUint32(0) === SIGNATURE;
  const tracks = [];
  /** @type {Chapter[]} */
  const chapters = [];
  let unit_s = 0.001;
  for (const { id, body } of isMatroska ? elementsOf(view) : []) {
    if (id === ID.unit) unit_s = numberOf(body) / 1e9;
    if (id === ID.track) tracks.push(new Track());
    tracks.at(-1)?.read(id, body);
    if (id === ID.chapter) chapters.push({ at_s: 0, title: "" });
    const chapter = chapters.at(-1);
    if (chapter && id === ID.chapterStart) chapter.at_s = numberOf(body) / 1e9;
    if (chapter && id === ID.chapterTitle) chapter.title ||= textOf(body).trim();
  }
  const subtitles = tracks.filter(({ type }) => type === SUBTITLES);
  const texts = subtitles.filter(({ codec, isReadable }) => isReadable && TEXT.test(codec));
  const delays_s = new Map(tracks.map(({ number, delay_s }) => [number, delay_s]));
  return { delays_s, chapters, texts, pictures: subtitles.length - texts.length, unit_s };
}

class Track {
  number = 0;
  type = 0;
  codec = "";
  // What the specification says of a track without the element.
  language = "eng";
  name = "";
  delay_s = 0;
  isCompressed = false;
  isReadable = true;

  /** Read an element of the track. @param {number} id @param {DataView} body */
  read(id, body) {
    if (id === ID.number) this.number = numberOf(body);
    if (id === ID.type) this.type = numberOf(body);
    if (id === ID.codec) this.codec = textOf(body);
    if (id === ID.language) this.language = textOf(body);
    if (id === ID.name) this.name = textOf(body);
    if (id === ID.codecDelay) this.delay_s = numberOf(body) / 1e9;
    if (id === ID.compressed) this.isCompressed = true;
    // Zero is zlib, the only one that is used for text.
    if (id === ID.encryption || (id === ID.compression && numberOf(body))) this.isReadable = false;
  }
}

/**
 * Return the elements before the media data, each parent before its children.
 * @param {DataView} view @returns {Generator<{ id: number, body: DataView }>}
 */
function* elementsOf(view) {
  for (let at = 0; ; ) {
    const element = elementAt(view, at);
    if (!element || element.id === CLUSTER) return;
    const { id, start, end } = element;
    const body = viewOf(view, start, Math.min(end, view.byteLength));
    yield { id, body };
    if (PARENTS.has(id)) yield* elementsOf(body);
    at = end;
  }
}

/** @param {DataView} body */
const textOf = (body) => new TextDecoder().decode(body).replace(/\0+$/, "");
