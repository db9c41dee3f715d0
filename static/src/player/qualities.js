/** The qualities of a stream: what menus call them, and which one stands for one that is wanted. */

/** @typedef {import("./track-lists.js").VideoRendition} VideoRendition */

/**
 * A menu's entry. It goes by the rendition's name, for sizes are rounded to what encoders take:
 * 358 lines are called 360p.
 * @param {import("hls.js").Level} level
 * @param {number} index
 * @returns {VideoRendition}
 */
export function asRendition({ width, height, bitrate, uri }, index) {
  const lines = Math.min(width, height);
  const name = Number(/\/(\d+)p\/[^/]*$/.exec(new URL(uri, location.href).pathname)?.[1] ?? lines);
  const side = (/** @type {number} */ length) => Math.round((length * name) / lines);
  return { id: String(index), width: side(width), height: side(height), bitrate, lines, name };
}

/**
 * @param {VideoRendition[]} renditions
 * @param {number} wanted the name of one, of this video or another; 0 for any
 * @returns {number} the index of the nearest that isn't above, else of the lowest; -1 for any
 */
export function indexOfNearest(renditions, wanted) {
  if (!wanted || renditions.length === 0) return -1;
  const names = renditions.map(({ name }) => name);
  const suitable = names.filter((name) => name <= wanted);
  return names.indexOf(suitable.length ? Math.max(...suitable) : Math.min(...names));
}
