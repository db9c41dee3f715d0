/** Boxes of a fragmented MP4 file, of which any whole number of fragments plays. Pure. */

/** Size of a box's header: size, type, and a size of 64 bits. */
const HEADER_BYTES = 16;
/** Begins a fragment, whose samples follow in the next box. */
const FRAGMENT = "moof";
const SAMPLES = "mdat";

/**
 * Return the length of a file without a torn box or a torn fragment at its end; 0 without any whole
 * fragment.
 * @param {number} size_bytes @param {(start: number, end: number) => Uint8Array} read
 */
export function wholeLength(size_bytes, read) {
  let whole_bytes = 0;
  let hasFragment = false;
  for (let start = 0; start + 8 <= size_bytes; ) {
    const { type, length } = boxOf(read(start, Math.min(start + HEADER_BYTES, size_bytes)));
    start += length;
    // A length of 0 is that of a box without an end.
    if (start > size_bytes || length < 8) break;
    hasFragment ||= type === SAMPLES;
    if (type !== FRAGMENT) whole_bytes = start;
  }
  return hasFragment ? whole_bytes : 0;
}

/** @param {Uint8Array} header @returns {{ type: string, length: number }} */
function boxOf(header) {
  const view = new DataView(header.buffer, header.byteOffset, header.length);
  const type = String.fromCharCode(...header.subarray(4, 8));
  const short = view.getUint32(0);
  if (short !== 1) return { type, length: short };
  return { type, length: header.length < HEADER_BYTES ? 0 : Number(view.getBigUint64(8)) };
}
