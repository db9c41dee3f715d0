/** Facts in the head of a Matroska or WebM file (RFC 9559) that mediabunny doesn't read. */

/** Length of the part of the file that is searched. */
const SEARCHED_BYTES = 4 * 2 ** 20;
const ID = {
  ...{ segment: 0x18538067, cluster: 0x1f43b675 },
  ...{ tracks: 0x1654ae6b, track: 0xae, trackNumber: 0xd7, trackType: 0x83, codecDelay: 0x56aa },
  ...{ chapters: 0x1043a770, edition: 0x45b9, chapter: 0xb6, chapterStart: 0x91 },
  ...{ chapterHidden: 0x98, chapterDisplay: 0x80, chapterTitle: 0x85 },
};
const PARENTS = new Set([
  ...[ID.segment, ID.tracks, ID.track, ID.chapters, ID.edition, ID.chapter, ID.chapterDisplay],
]);
const SUBTITLES = 0x11;

/** @typedef {{ at_s: number, title: string }} Chapter */
/**
 * `delays_s` has the time by which each track is shown earlier than its packets say, by its number.
 * @typedef {{ delays_s: Map<number, number>, chapters: Chapter[], subtitles: number }} MatroskaFacts
 */

/** Return the facts; those of another file are empty. @param {Blob} file @returns {Promise<MatroskaFacts>} */
export async function readMatroska(file) {
  const view = new DataView(await file.slice(0, SEARCHED_BYTES).arrayBuffer());
  /** @type {MatroskaFacts} */
  const facts = { delays_s: new Map(), chapters: [], subtitles: 0 };
  if (view.byteLength < 4 || view.getUint32(0) !== 0x1a45dfa3) return facts;
  let track = 0;
  for (const { id, body } of elementsOf(view)) {
    if (id === ID.trackNumber) track = numberOf(body);
    if (id === ID.trackType && numberOf(body) === SUBTITLES) facts.subtitles += 1;
    if (id === ID.codecDelay) facts.delays_s.set(track, numberOf(body) / 1e9);
    if (id === ID.chapter) facts.chapters.push({ at_s: 0, title: "" });
    const chapter = facts.chapters.at(-1);
    if (chapter && id === ID.chapterStart) chapter.at_s = numberOf(body) / 1e9;
    if (chapter && id === ID.chapterTitle) chapter.title ||= new TextDecoder().decode(body).trim();
  }
  return facts;
}

/**
 * Return the elements before the media data, each parent before its children.
 * @param {DataView} view @returns {Generator<{ id: number, body: DataView }>}
 */
function* elementsOf(view) {
  for (let at = 0; at + 2 <= view.byteLength; ) {
    const id_bytes = Math.clz32(view.getUint8(at)) - 23;
    const size_at = at + id_bytes;
    if (id_bytes > 4 || size_at >= view.byteLength) return;
    const size_bytes = Math.clz32(view.getUint8(size_at)) - 23;
    const start = size_at + size_bytes;
    if (size_bytes > 8 || start > view.byteLength) return;
    const id = numberOf(viewOf(view, at, size_at));
    if (id === ID.cluster) return;
    // An unknown size has all bits set, and reaches over the end.
    const high = (view.getUint8(size_at) & (0xff >> size_bytes)) * 256 ** (size_bytes - 1);
    const end = start + high + numberOf(viewOf(view, size_at + 1, start));
    const body = viewOf(view, start, Math.min(end, view.byteLength));
    yield { id, body };
    if (PARENTS.has(id)) yield* elementsOf(body);
    at = end;
  }
}

/** @param {DataView} view @param {number} start @param {number} end */
const viewOf = ({ buffer, byteOffset }, start, end) =>
  new DataView(buffer, byteOffset + start, end - start);

/** Return the number in an element. @param {DataView} body */
function numberOf(body) {
  let number = 0;
  for (let at = 0; at < body.byteLength; at += 1) number = number * 256 + body.getUint8(at);
  return number;
}
