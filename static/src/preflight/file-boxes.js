/**
 * Walks the outermost boxes of an MP4 or QuickTime file (ISO/IEC 14496-12): tells a cut-off file
 * from one of another kind.
 */

/** Fragments follow by the thousand. */
const MAX_BOXES = 4000;
const HEADER_BYTES = 16;

/**
 * `hasIndex`, `isIndexWhole` and `index_at` tell of the file's `moov` box; `media_share` is how much of the
 * media that a box announces is inside the file.
 * @typedef {{ hasIndex: boolean, isIndexWhole: boolean, hasMedia: boolean, hasFragments: boolean,
 *   index_at: number, brand: string, media_share: number }} Outline
 */

/** @param {Blob} file @returns {Promise<Outline>} */
export async function readOutline(file) {
  const outline = { hasIndex: false, isIndexWhole: false, hasMedia: false, hasFragments: false };
  /** @type {Outline} */
  const found = { ...outline, index_at: 0, brand: "", media_share: 1 };
  let at = 0;
  for (let count = 0; count < MAX_BOXES && at + 8 <= file.size; count += 1) {
    const header = new DataView(await file.slice(at, at + HEADER_BYTES).arrayBuffer());
    const { size_bytes, body_bytes } = sizeOf(header, file.size - at);
    if (size_bytes < body_bytes) return found;
    const end = at + size_bytes;
    const kind = fourLetters(header, 4);
    if (kind === "ftyp" && header.byteLength >= 12) found.brand = fourLetters(header, 8);
    if (kind === "moof") found.hasFragments = true;
    if (kind === "moov" && !found.hasIndex) {
      found.hasIndex = true;
      found.index_at = at;
      found.isIndexWhole = end <= file.size;
    }
    if (kind === "mdat") {
      found.hasMedia = true;
      const body = at + body_bytes;
      if (end > file.size) found.media_share = (file.size - body) / (end - body);
    }
    if (found.hasIndex && found.hasFragments) return found;
    at = end;
  }
  return found;
}

/** @param {DataView} header @param {number} rest_bytes to the end of the file */
function sizeOf(header, rest_bytes) {
  const size_bytes = header.getUint32(0);
  if (size_bytes === 1 && header.byteLength === HEADER_BYTES) {
    return { size_bytes: Number(header.getBigUint64(8)), body_bytes: 16 };
  }
  return { size_bytes: size_bytes === 0 ? rest_bytes : size_bytes, body_bytes: 8 };
}

/** @param {DataView} view @param {number} at */
function fourLetters(view, at) {
  return String.fromCharCode(...[0, 1, 2, 3].map((offset) => view.getUint8(at + offset)));
}
