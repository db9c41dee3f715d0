/**
 * player.js protocol of an embedded player (SPEC.rst of github.com/embedly/player.js): the site
 * that shows the player in a frame controls it by messages, and receives its events. Messages are
 * JSON text. Methods and event for captions are additions to the protocol. Every frame loads this
 * script, so it is small.
 */

import { isCaptions, shownLanguage } from "./captions.js";
import { playedPart } from "./clip.js";

/** @typedef {unknown} Listener identifier that the site chose; undefined without */
/** @typedef {Record<string, (value: unknown, listener: Listener) => unknown>} Methods */

const CONTEXT = "player.js";
const VERSION = "0.0.11";
// Events of the element that are sent under the same name.
const ELEMENT_EVENTS = ["play", "pause", "ended", "timeupdate", "progress", "seeked"];
const EVENTS = [...ELEMENT_EVENTS, "ready", "error", "captionschange"];
/** Codes of the protocol for errors; -1 for others. @type {Record<string, number>} */
const CODES = { unsupported: 1, method: 2 };
// The player is at its start, or at the end of a clip, when it is this close.
const NEAR_S = 0.05;
// Part of the frame's path that grants a private video. Messages never contain it.
const PLAYBACK_TOKEN = /\/p\/[^/]+(?=\/embed\/)/;

/** Conversation with the site that shows the player in a frame. */
export class Embedding {
  #isReady = false;
  /** Origin of the site; any until its first message. */
  #origin = "*";
  /** Listeners of the site by event. @type {Map<unknown, Set<Listener>>} */
  #listeners = new Map(EVENTS.map((name) => [name, new Set()]));

  /**
   * @param {HTMLVideoElement} video @param {number} start_s position at which the player begins
   * @param {AbortSignal} signal
   */
  constructor(video, start_s, signal) {
    this.video = video;
    this.start_s = start_s;
    this.language = shownLanguage(video);
    /** @type {Methods} */
    this.methods = {
      play: () => this.#play(),
      addEventListener: (event, listener) => this.#addListener(event, listener),
      removeEventListener: (event, listener) => this.#removeListener(event, listener),
      ...methodsOf(video),
    };
    // The site gets this event without asking.
    this.#addListener("ready");
    for (const name of [...ELEMENT_EVENTS, "loadedmetadata", "trouble"]) {
      video.addEventListener(name, (event) => this.#handle(event), { signal });
    }
    video.textTracks.addEventListener("change", () => this.#followCaptions(), { signal });
    addEventListener("message", (event) => this.#receive(event), { signal });
  }

  /** @param {MessageEvent} event */
  #receive({ source, origin, data }) {
    if (source !== parent) return;
    /** @type {any} */
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return;
    }
    const { context, method, value, listener } = message ?? {};
    if (context !== CONTEXT || typeof method !== "string") return;
    // A site in a sandbox or a file has no origin that a message could be sent to.
    this.#origin = origin === "null" ? "*" : origin;
    if (!Object.hasOwn(this.methods, method)) return this.#emitError("method");
    const result = this.methods[method]?.(value, listener);
    if (method.startsWith("get")) this.#send(method, result, listener);
  }

  /** Handle an event of the video element. @param {any} event */
  #handle({ type, detail }) {
    const { video } = this;
    this.#becomeReady();
    if (type === "trouble") return this.#emitError(detail);
    // The element itself ends with the whole video only.
    const isAtEnd = video.currentTime >= playedPart(video).end_s - NEAR_S;
    const isEndOfClip = type === "pause" && !video.ended && isAtEnd;
    if (isEndOfClip && video.loop) return this.#play();
    this.#emit(type, placeOf(video, type));
    if (isEndOfClip) this.#emit("ended");
  }

  /** Send `ready` once the player is at its start position. */
  #becomeReady() {
    const { readyState, seeking, played, currentTime } = this.video;
    const hasBegun = played.length > 0 || currentTime > this.start_s - NEAR_S;
    if (this.#isReady || readyState === 0 || seeking || !hasBegun) return;
    this.#isReady = true;
    this.#emitReady();
  }

  #emitReady() {
    const src = location.href.replace(PLAYBACK_TOKEN, "");
    this.#emit("ready", { src, events: EVENTS, methods: Object.keys(this.methods) });
  }

  #play() {
    const handleRefusal = (/** @type {Error} */ { name }) => {
      if (name === "NotAllowedError") this.#emitError("autoplay");
    };
    this.video.play().catch(handleRefusal);
  }

  /** @param {unknown} event @param {Listener} [listener] */
  #addListener(event, listener) {
    this.#listeners.get(event)?.add(listener);
    if (event === "ready" && this.#isReady) this.#emitReady();
  }

  /** @param {unknown} event @param {Listener} listener undefined for all */
  #removeListener(event, listener) {
    const listeners = this.#listeners.get(event);
    if (listener === undefined) listeners?.clear();
    else listeners?.delete(listener);
  }

  #followCaptions() {
    const language = shownLanguage(this.video);
    if (language !== this.language) this.#emit("captionschange", language);
    this.language = language;
  }

  /** @param {string} msg */
  #emitError(msg) {
    this.#emit("error", { code: CODES[msg] ?? -1, msg });
  }

  /** Send an event to its listeners. @param {string} event @param {unknown} [value] */
  #emit(event, value) {
    for (const listener of this.#listeners.get(event) ?? []) this.#send(event, value, listener);
  }

  /** @param {string} event @param {unknown} value @param {Listener} listener */
  #send(event, value, listener) {
    const message = { context: CONTEXT, version: VERSION, event, value, listener };
    parent.postMessage(JSON.stringify(message), this.#origin);
  }
}

/** Return the methods that need only the video. @param {HTMLVideoElement} video @returns {Methods} */
function methodsOf(video) {
  return {
    pause: () => video.pause(),
    getPaused: () => video.paused,
    mute: () => setSound(video, { muted: true }),
    unmute: () => setSound(video, { muted: false }),
    getMuted: () => video.muted,
    setVolume: (value) => {
      if (isBetween(value, 0, 100)) setSound(video, { volume: value / 100 });
    },
    getVolume: () => Math.round(video.volume * 100),
    getDuration: () => placeOf(video).duration,
    setCurrentTime: (value) => {
      const { start_s, end_s } = playedPart(video);
      if (isBetween(value, 0, end_s)) video.currentTime = Math.max(value, start_s);
    },
    getCurrentTime: () => video.currentTime,
    setLoop: (value) => {
      if (typeof value === "boolean") video.loop = value;
    },
    getLoop: () => video.loop,
    setCaptions: (value) => showCaptions(video, value),
    getCaptions: () => shownLanguage(video),
  };
}

/** @param {unknown} value @param {number} least @param {number} most @returns {value is number} */
function isBetween(value, least, most) {
  return typeof value === "number" && value >= least && value <= most;
}

/**
 * Return position and length, as the player shows them; for `progress` the end of the buffer.
 * @param {HTMLVideoElement} video @param {string} [event]
 */
function placeOf(video, event) {
  const { buffered, currentTime, dataset } = video;
  const isBuffer = event === "progress" && buffered.length > 0;
  return {
    seconds: isBuffer ? buffered.end(buffered.length - 1) : currentTime,
    // The stream has no length while it is opened again.
    duration: playedPart(video).end_s || Number(dataset.duration),
  };
}

/**
 * Set volume or mute, and note that the viewer didn't choose them (`saved-state.js` reads it).
 * @param {HTMLVideoElement} video @param {{ volume?: number, muted?: boolean }} changes
 */
function setSound(video, changes) {
  Object.assign(video, changes);
  video.dataset.siteSound = `${video.volume} ${video.muted}`;
}

/** @param {HTMLVideoElement} video @param {unknown} language empty for no captions */
function showCaptions({ textTracks }, language) {
  const tracks = [...textTracks].filter(isCaptions);
  const chosen = tracks.find((track) => track.language === language);
  if (language !== "" && !chosen) return;
  for (const track of tracks) track.mode = track === chosen && language ? "showing" : "disabled";
}
