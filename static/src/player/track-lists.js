/**
 * Gives video elements the two lists that media-chrome's menus read and browsers lack:
 * `videoRenditions` and `audioTracks`. They hold what the stream says it has; choosing in them
 * sends "choose", which the stream acts on. A browser's own list of audio tracks stays in place
 * where the browser plays HLS by itself.
 */
import Hls from "hls.js";

/**
 * Width and height are those of the name (720 for 720p); `lines` is the shorter side's true size.
 * @typedef {object} VideoRendition
 * @property {string} id
 * @property {number} width
 * @property {number} height
 * @property {number} bitrate
 * @property {number} lines
 * @property {number} name
 */
/** @typedef {{ label: string, language: string }} AudioFacts */

/**
 * @template T
 * @extends {EventTarget}
 */
class TrackList extends EventTarget {
  /** @type {T[]} */
  items = [];

  get length() {
    return this.items.length;
  }

  [Symbol.iterator]() {
    return this.items[Symbol.iterator]();
  }

  /** @param {number} index */
  choose(index) {
    this.dispatchEvent(new CustomEvent("choose", { detail: index }));
    this.dispatchEvent(new Event("change"));
  }
}

/** @extends {TrackList<VideoRendition>} */
export class RenditionList extends TrackList {
  #selected = -1;

  /** The fixed quality, or -1 for one that follows the connection. */
  get selectedIndex() {
    return this.#selected;
  }

  set selectedIndex(index) {
    this.#selected = index;
    this.choose(index);
  }

  /**
   * @param {VideoRendition[]} renditions
   * @param {number} selected
   */
  fill(renditions, selected) {
    this.items = renditions;
    this.#selected = selected;
    for (const [index, rendition] of renditions.entries()) {
      // media-chrome reads `list[selectedIndex]`.
      Object.defineProperty(this, index, { value: rendition, configurable: true });
    }
    this.dispatchEvent(new Event("addrendition"));
  }
}

/** One entry of an audio menu; enabling it asks for it. */
class AudioChoice {
  #list;
  #index;

  /**
   * @param {AudioTrackChoices} list
   * @param {number} index
   * @param {AudioFacts} facts
   */
  constructor(list, index, { label, language }) {
    this.#list = list;
    this.#index = index;
    this.id = String(index);
    this.kind = "main";
    this.label = label;
    this.language = language;
  }

  get enabled() {
    return this.#list.enabledIndex === this.#index;
  }

  set enabled(isWanted) {
    if (isWanted && !this.enabled) this.#list.enabledIndex = this.#index;
  }
}

/** @extends {TrackList<AudioChoice>} */
export class AudioTrackChoices extends TrackList {
  #enabled = -1;

  get enabledIndex() {
    return this.#enabled;
  }

  set enabledIndex(index) {
    this.#enabled = index;
    this.choose(index);
  }

  /**
   * @param {AudioFacts[]} tracks
   * @param {number} enabled
   */
  fill(tracks, enabled) {
    this.items = tracks.map((facts, index) => new AudioChoice(this, index, facts));
    this.#enabled = enabled;
    this.dispatchEvent(new Event("addtrack"));
  }
}

/** @type {WeakMap<HTMLVideoElement, RenditionList>} */
const renditionLists = new WeakMap();
/** @type {WeakMap<HTMLVideoElement, AudioTrackChoices>} */
const audioLists = new WeakMap();

/** @param {HTMLVideoElement} video */
export function renditionsOf(video) {
  return found(renditionLists, video, () => new RenditionList());
}

/** @param {HTMLVideoElement} video */
export function audioTracksOf(video) {
  return found(audioLists, video, () => new AudioTrackChoices());
}

/**
 * @template T
 * @param {WeakMap<HTMLVideoElement, T>} lists
 * @param {HTMLVideoElement} video
 * @param {() => T} make
 */
function found(lists, video, make) {
  const list = lists.get(video) ?? make();
  lists.set(video, list);
  return list;
}

/**
 * @param {string} name
 * @param {(video: HTMLVideoElement) => unknown} read
 */
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
