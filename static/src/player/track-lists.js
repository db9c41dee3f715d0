/**
 * Lists of qualities and audio tracks that media-chrome's menus read. The stream fills them, and
 * switches when an item is chosen, which sends "change".
 */
import { gettext, language } from "../messages.js";
import { isNative } from "./native-stream.js";

/**
 * Item of the quality menu. Width and height are derived from the name: 1280 and 720 for 720p.
 * @typedef {{ id: string, width: number, height: number, bitrate: number, name: number }} Rendition
 */
/** @typedef {{ renditions: TrackList<Rendition>, audioTracks: TrackList<any> }} TrackLists */

/** @template T @extends {EventTarget} */
class TrackList extends EventTarget {
  /** @type {T[]} */
  items = [];
  #selected = -1;

  get length() {
    return this.items.length;
  }

  [Symbol.iterator]() {
    return this.items[Symbol.iterator]();
  }

  /** Index of the chosen item; -1 for automatic quality. */
  get selectedIndex() {
    return this.#selected;
  }

  set selectedIndex(index) {
    this.#selected = index;
    this.dispatchEvent(new Event("change"));
  }

  /** Replace the items. @param {T[]} items @param {number} selected */
  fill(items, selected) {
    this.items = items;
    this.#selected = selected;
    // media-chrome reads `list[selectedIndex]`.
    Object.assign(this, items);
    for (const name of ["addrendition", "addtrack"]) this.dispatchEvent(new Event(name));
  }
}

/**
 * Define the lists of a video. This has to happen before media-chrome is loaded.
 * @param {HTMLVideoElement} video @returns {TrackLists}
 */
export function defineTrackLists(video) {
  const renditions = new TrackList();
  const audioTracks = new TrackList();
  Object.defineProperty(video, "videoRenditions", { value: renditions });
  // Browsers that play HLS themselves have their own list.
  if (!isNative(video)) Object.defineProperty(video, "audioTracks", { value: audioTracks });
  return { renditions, audioTracks };
}

/**
 * Return an item of the quality menu. It has the rendition's name, because encoders round sizes: a
 * picture of 358 lines is called 360p.
 * @param {import("hls.js").Level} level @param {number} index @returns {Rendition}
 */
export function toRendition({ width, height, bitrate, uri }, index) {
  const lines = Math.min(width, height);
  const name = Number(/\/(\d+)p\/[^/]*$/.exec(new URL(uri, location.href).pathname)?.[1] ?? lines);
  const scaled = (/** @type {number} */ length) => Math.round((length * name) / lines);
  return { id: String(index), width: scaled(width), height: scaled(height), bitrate, name };
}

/**
 * Return the index of the best rendition up to a quality, else of the lowest one.
 * @param {Rendition[]} renditions lowest first @param {number} quality such as 720; 0 for automatic
 * @returns {number} -1 for automatic
 */
export function indexOfNearest(renditions, quality) {
  if (!quality || renditions.length === 0) return -1;
  const higherIndex = renditions.findIndex(({ name }) => name > quality);
  return higherIndex < 0 ? renditions.length - 1 : Math.max(higherIndex - 1, 0);
}

const englishNames = new Intl.DisplayNames("en", { type: "language" });
const names = new Intl.DisplayNames(language, { type: "language" });

/**
 * Return the name of a sound track, in the page's language if the portal made it.
 * @param {string} name @param {string} [code] of the track's language
 */
function labelOf(name, code) {
  if (code && name === englishNames.of(code)) {
    const own = names.of(code) ?? name;
    return own.charAt(0).toLocaleUpperCase(language) + own.slice(1);
  }
  // Translators: name of a sound track without a name.
  return name === "Audio" ? gettext("Audio") : name;
}

/**
 * Return an item of the audio menu. Enabling the item selects it.
 * @param {TrackList<any>} list @param {number} index @param {import("hls.js").MediaPlaylist} track
 */
export function toAudioTrack(list, index, { name, lang }) {
  return {
    id: String(index),
    kind: "main",
    label: labelOf(name, lang),
    language: lang ?? "",
    get enabled() {
      return list.selectedIndex === index;
    },
    set enabled(isEnabled) {
      if (isEnabled && !this.enabled) list.selectedIndex = index;
    },
  };
}
