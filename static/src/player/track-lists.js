/**
 * Gives video elements the two lists that media-chrome's menus read and browsers lack:
 * `videoRenditions` and `audioTracks`. They hold what the stream says it has; choosing in them
 * sends "change", which the stream acts on. A browser's own list of audio tracks stays in place
 * where the browser plays HLS by itself.
 */
import Hls from "hls.js";

/**
 * Width and height are those of the name (720 for 720p); `lines` is the shorter side's true size.
 * @typedef {{ id: string, width: number, height: number, bitrate: number, lines: number,
 *   name: number }} VideoRendition
 */

/** @template T @extends {EventTarget} */
export class TrackList extends EventTarget {
  /** @type {T[]} */
  items = [];
  #selected = -1;

  get length() {
    return this.items.length;
  }

  [Symbol.iterator]() {
    return this.items[Symbol.iterator]();
  }

  /** What someone chose; of qualities -1 for one that follows the connection. */
  get selectedIndex() {
    return this.#selected;
  }

  set selectedIndex(index) {
    this.#selected = index;
    this.dispatchEvent(new Event("change"));
  }

  /** @param {T[]} items @param {number} selected */
  fill(items, selected) {
    this.items = items;
    this.#selected = selected;
    for (const [index, value] of items.entries()) {
      // media-chrome reads `list[selectedIndex]`.
      Object.defineProperty(this, index, { value, configurable: true });
    }
    for (const name of ["addrendition", "addtrack"]) this.dispatchEvent(new Event(name));
  }
}

/** @typedef {TrackList<VideoRendition>} RenditionList */

/**
 * An entry of the menu of qualities. It goes by the rendition's name, for sizes are rounded to what
 * encoders take: 358 lines are called 360p.
 * @param {import("hls.js").Level} level @param {number} index @returns {VideoRendition}
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

/**
 * An entry of the menu of audio tracks; enabling it asks for it.
 * @param {TrackList<any>} list @param {number} index @param {import("hls.js").MediaPlaylist} track
 */
export function asAudioTrack(list, index, { name, lang }) {
  return {
    id: String(index),
    kind: "main",
    label: name,
    language: lang ?? "",
    get enabled() {
      return list.selectedIndex === index;
    },
    set enabled(isWanted) {
      if (isWanted && !this.enabled) list.selectedIndex = index;
    },
  };
}

/** @returns {(video: HTMLVideoElement) => TrackList<any>} the list of each video */
function listOfEach() {
  const lists = new WeakMap();
  return (video) => {
    if (!lists.has(video)) lists.set(video, new TrackList());
    return lists.get(video);
  };
}

/** @type {(video: HTMLVideoElement) => RenditionList} */
export const renditionsOf = listOfEach();
export const audioTracksOf = listOfEach();

/** @param {string} name @param {(video: HTMLVideoElement) => unknown} read */
function define(name, read) {
  Object.defineProperty(HTMLVideoElement.prototype, name, {
    configurable: true,
    /** @this {HTMLVideoElement} */
    get() {
      return read(this);
    },
  });
}

define("videoRenditions", renditionsOf);
if (Hls.isSupported()) define("audioTracks", audioTracksOf);
