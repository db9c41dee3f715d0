/**
 * The lists of qualities and audio tracks that media-chrome's menus read. The stream fills them;
 * choosing an item sends "change", which the stream acts on.
 */
import { isNative } from "./native-stream.js";

/**
 * Width and height are those of the name: 1280 and 720 for 720p.
 * @typedef {{ id: string, width: number, height: number, bitrate: number, name: number }} Rendition
 */
/** @typedef {{ renditions: TrackList<Rendition>, audioTracks: TrackList<any> }} TrackLists */

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

  /** The chosen item; -1 for automatic quality. */
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
    // media-chrome reads `list[selectedIndex]`.
    Object.assign(this, items);
    for (const name of ["addrendition", "addtrack"]) this.dispatchEvent(new Event(name));
  }
}

/**
 * Gives a video its lists, which has to happen before media-chrome is loaded.
 * @param {HTMLVideoElement} video @returns {TrackLists}
 */
export function giveTrackLists(video) {
  const renditions = new TrackList();
  const audioTracks = new TrackList();
  Object.defineProperty(video, "videoRenditions", { value: renditions });
  // The browser has its own list then.
  if (!isNative(video)) Object.defineProperty(video, "audioTracks", { value: audioTracks });
  return { renditions, audioTracks };
}

/**
 * An item of the quality menu. It is named like the rendition, because encoders round sizes: 358
 * lines are called 360p.
 * @param {import("hls.js").Level} level @param {number} index @returns {Rendition}
 */
export function asRendition({ width, height, bitrate, uri }, index) {
  const lines = Math.min(width, height);
  const name = Number(/\/(\d+)p\/[^/]*$/.exec(new URL(uri, location.href).pathname)?.[1] ?? lines);
  const side = (/** @type {number} */ length) => Math.round((length * name) / lines);
  return { id: String(index), width: side(width), height: side(height), bitrate, name };
}

/**
 * @param {Rendition[]} renditions from the lowest
 * @param {number} wanted a name such as 720; 0 for automatic
 * @returns {number} index of the nearest that isn't higher, else of the lowest; -1 for automatic
 */
export function indexOfNearest(renditions, wanted) {
  if (!wanted || renditions.length === 0) return -1;
  const above = renditions.findIndex(({ name }) => name > wanted);
  return above < 0 ? renditions.length - 1 : Math.max(above - 1, 0);
}

/**
 * An item of the audio menu; enabling it selects it.
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
