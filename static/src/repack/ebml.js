/** Elements of EBML (RFC 8794), of which Matroska consists. */

/** Elements of Matroska that hold others: the whole film, and a piece of its media data. */
export const SEGMENT = 0x18538067;
export const CLUSTER = 0x1f43b675;
/** Longest identifier and longest size. */
export const HEADER_BYTES = 12;

/**
 * Element with the places of its content; an unknown size, which has all bits set, reaches over the
 * end.
 * @typedef {{ id: number, start: number, end: number }} Element
 */

/**
 * Return the element at a place, or null if there is none.
 * @param {DataView} view @param {number} at @returns {Element | null}
 */
export function elementAt(view, at) {
  if (at + 2 > view.byteLength) return null;
  const id_bytes = lengthAt(view, at);
  const size_at = at + id_bytes;
  if (id_bytes > 4 || size_at >= view.byteLength) return null;
  const start = size_at + lengthAt(view, size_at);
  if (start - size_at > 8 || start > view.byteLength) return null;
  const id = numberOf(viewOf(view, at, size_at));
  return { id, start, end: start + variableAt(view, size_at) };
}

/** Return the number of variable length at a place. @param {DataView} view @param {number} at */
export function variableAt(view, at) {
  const length = lengthAt(view, at);
  const high = (view.getUint8(at) & (0xff >> length)) * 256 ** (length - 1);
  return high + numberOf(viewOf(view, at + 1, at + length));
}

/** Return the length of a number of variable length. @param {DataView} view @param {number} at */
export const lengthAt = (view, at) => Math.clz32(view.getUint8(at)) - 23;

/** @param {DataView} view @param {number} start @param {number} end */
export const viewOf = ({ buffer, byteOffset }, start, end) =>
  new DataView(buffer, byteOffset + start, end - start);

/** Return the number in an element. @param {DataView} body */
export function numberOf(body) {
  let number = 0;
  for (let at = 0; at < body.byteLength; at += 1) number = number * 256 + body.getUint8(at);
  return number;
}
