/**
 * The outermost boxes of an MP4 or QuickTime file (ISO/IEC 14496-12), which tell a cut-off file from
 * one of another kind.
 */

const MAX_BOXES = 4000;
const HEADER_BYTES = 16;

/**
 * `at`, `body_at` and `end` are in bytes from the file's beginning; `end` is where the box says that
 * it ends, which a cut-off file doesn't reach.
 * @typedef {{ kind: string, at: number, body_at: number, end: number }} Box
 */

/** @param {Blob} file @returns {Promise<Box[]>} as far as they are of interest, and make sense */
export async function readBoxes(file) {
  /** @type {Box[]} */
  const boxes = [];
  let at = 0;
  while (boxes.length < MAX_BOXES && at + 8 <= file.size) {
    const header = new DataView(await file.slice(at, at + HEADER_BYTES).arrayBuffer());
    const { size_bytes, body_bytes } = sizeOf(header, file.size - at);
    if (size_bytes < body_bytes) break;
    const kind = String.fromCharCode(...[4, 5, 6, 7].map((offset) => header.getUint8(offset)));
    boxes.push({ kind, at, body_at: at + body_bytes, end: at + size_bytes });
    // Fragments follow by the thousand.
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
