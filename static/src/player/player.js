/**
 * Player of <video data-player data-src>: controls by media-chrome, the stream by hls.js. Only
 * pages with a player fetch both; until they are loaded, the poster is shown.
 */

import { element, setText } from "../dom.js";
import { gettext } from "../messages.js";
import { startCaptionTracks } from "./caption-tracks.js";
import { drawCaptions } from "./captions.js";
import { clipOf, correctPreviews, keepInside } from "./clip.js";
import { createSign, listenToKeys, listenToTaps } from "./input.js";
import { improveMenus, startKeysDialog } from "./menus.js";
import { isNative, NativeStream } from "./native-stream.js";
import { startReports } from "./reports.js";
import {
  restoreSettings,
  saveCaptionChoices,
  savePositionDuringPlayback,
  startPosition_s,
} from "./saved-state.js";
import { defineTrackLists } from "./track-lists.js";
import { MESSAGES } from "./troubles.js";

/** @typedef {import("./troubles.js").Trouble} Trouble */

/** @type {import("../lifecycle.js").Start} */
export function startPlayer(video, signal) {
  const box = video.closest(".player");
  if (!(video instanceof HTMLVideoElement) || !(box instanceof HTMLElement)) return;
  return new Player(video, box, signal).start();
}

/** Fragment of an address at which the video plays, as the next one of a series. */
const PLAY = "#play";
// Waits of this length show a message; shorter ones only animate the line below the picture.
const WAIT_NOTICE_MS = 2_000;
// Tolerance between the buffered and the total length.
const END_S = 0.05;

class Player {
  /** @type {import("./hls-stream.js").HlsStream | NativeStream | null} */
  #stream = null;
  /** Whether the stream is retrying a request that failed. */
  #isReconnecting = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #waitTimer;

  /** @param {HTMLVideoElement} video @param {HTMLElement} box @param {AbortSignal} signal */
  constructor(video, box, signal) {
    this.video = video;
    this.box = box;
    this.signal = signal;
    this.lists = defineTrackLists(video);
    this.controller = element(box, "media-controller");
    this.trouble = element(box, "[data-player-trouble]");
    this.waiting = element(box, "[data-player-waiting]");
    signal.addEventListener("abort", () => this.#close());
    const retry = this.trouble.querySelector("button");
    retry?.addEventListener("click", () => this.#retry(), { signal });
    video.addEventListener("playing", () => this.#hideMessages(), { signal });
    video.addEventListener("canplay", () => this.#hideWaiting(), { signal });
    for (const name of ["waiting", "seeking"]) {
      video.addEventListener(name, () => this.#startWaitTimer(), { signal });
    }
    video.addEventListener("durationchange", () => this.#showWatchableShare(), { signal });
    const adopt = (/** @type {any} */ event) => this.#adoptQualities(event.detail);
    document.body.addEventListener("quality-added", adopt, { signal });
    const add = (/** @type {any} */ event) => this.#addThumbnails(event.detail);
    document.body.addEventListener("storyboard-made", add, { signal });
  }

  async start() {
    const { video, signal, controller } = this;
    // Options in the address are for embedded players, whose site chooses them.
    const query = new URLSearchParams("embedded" in video.dataset ? location.search : "");
    if (query.get("muted") === "1") video.muted = true;
    restoreSettings(video, signal);
    const clip = clipOf(video);
    // The position is that of the whole video, which a clip doesn't change.
    if (clip) {
      keepInside(clip, video, signal);
      correctPreviews(clip, element(controller, "media-time-range"), signal);
    } else savePositionDuringPlayback(video, signal);
    startReports(video, signal);
    saveCaptionChoices(controller, video, signal);
    drawCaptions(element(controller, "[data-player-captions]"), video, signal);
    startCaptionTracks(video, signal);
    const showSign = createSign(element(controller, "[data-player-sign]"), signal);
    const actions = {
      press: (/** @type {string} */ name) => element(controller, name).click(),
      ...startKeysDialog(this.box, controller, signal),
      framesPerSecond: () => this.#stream?.framesPerSecond,
      showSign,
    };
    listenToKeys(controller, video, actions, signal);
    listenToTaps(controller, video, showSign, signal);
    await this.#open(startPosition_s(video));
    // Browsers may refuse to play with sound.
    const isContinued = location.hash === PLAY;
    // A reload should not start the video again.
    if (isContinued) history.replaceState(history.state, "", location.pathname + location.search);
    if (isContinued || query.get("autoplay") === "1") video.play().catch(() => {});
  }

  /** Return the position, or the start position if the video isn't loaded. */
  get #position_s() {
    return this.video.currentTime || startPosition_s(this.video);
  }

  /** @param {number | null} at_s */
  async #open(at_s) {
    try {
      this.#stream ??= await this.#createStream();
    } catch {
      // The scripts of controls and stream failed to load.
      addEventListener("online", () => this.#retry(), { once: true, signal: this.signal });
      return this.#showTrouble("network");
    }
    if (this.signal.aborted) this.#stream.close();
    else this.#stream.open(at_s);
  }

  async #createStream() {
    const { video, signal } = this;
    // The page of an embedded player can also be a window's own.
    const isFramed = "embedded" in video.dataset && window.parent !== window;
    const [{ HlsStream }, embedding, loudness] = await Promise.all([
      import("./hls-stream.js"),
      isFramed ? import("./embedding.js") : null,
      video.dataset.gainDb ? import("../loudness/gain.js").catch(() => null) : null,
      import("./controls.js"),
    ]);
    const Stream = isNative(video) ? NativeStream : HlsStream;
    const stream = new Stream(video, this.lists, signal);
    stream.addEventListener("recovered", () => this.#handleRecovered(), { signal });
    stream.addEventListener("reconnecting", () => this.#handleReconnecting(), { signal });
    const show = (/** @type {any} */ event) => this.#showTrouble(event.detail);
    stream.addEventListener("trouble", show, { signal });
    improveMenus(this.controller, signal);
    // The browser's own streams can't be changed.
    if (Stream === HlsStream && loudness?.canChangeSound()) loudness.startGain(video, signal);
    if (embedding) new embedding.Embedding(video, startPosition_s(video) ?? 0, signal);
    return stream;
  }

  /**
   * Add the storyboard, which may be created after the page was loaded and the video became ready.
   * @param {string} url
   */
  #addThumbnails(url) {
    if (this.video.querySelector("track[label=thumbnails]")) return;
    const track = document.createElement("track");
    Object.assign(track, { kind: "metadata", label: "thumbnails", src: url, default: true });
    this.video.append(track);
    track.track.mode = "hidden";
  }

  /** Let the time bar of a growing preview take the share of the video that can be watched. */
  #showWatchableShare() {
    const { duration, dataset } = this.video;
    const share = "grows" in dataset ? duration / Number(dataset.duration) : 1;
    // The share is unknown before the stream is loaded, or if the portal doesn't know the length.
    this.controller.style.setProperty("--watchable-share", String(Math.min(share || 1, 1)));
  }

  #close() {
    clearTimeout(this.#waitTimer);
    this.#stream?.close();
  }

  /** Return whether playback lacks data; during playback from the buffer no message is needed. */
  get #isStarved() {
    const { currentTime, duration, buffered, readyState, dataset } = this.video;
    const last = buffered.length - 1;
    // Browsers also lack data at the end, and don't always report the end.
    const isTheEnd =
      last >= 0 && buffered.start(last) <= currentTime && buffered.end(last) >= duration - END_S;
    if (isTheEnd && !("grows" in dataset)) return false;
    return this.trouble.hidden && readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
  }

  #hideWaiting() {
    clearTimeout(this.#waitTimer);
    this.waiting.textContent = "";
  }

  #hideMessages() {
    this.trouble.hidden = true;
    this.#hideWaiting();
  }

  #handleRecovered() {
    this.#isReconnecting = false;
    this.#hideMessages();
    // The received data may be sound alone, or for another time.
    if (!this.video.paused || this.video.seeking) this.#startWaitTimer();
  }

  #handleReconnecting() {
    this.#isReconnecting = true;
    this.#showWaiting();
  }

  #startWaitTimer() {
    clearTimeout(this.#waitTimer);
    this.#waitTimer = setTimeout(() => this.#showWaiting(), WAIT_NOTICE_MS);
  }

  #showWaiting() {
    if (!this.#isStarved) return;
    const isGrowing = "grows" in this.video.dataset;
    const text = isGrowing
      ? gettext("Waiting for the next part to be processed…")
      : gettext("Waiting for the video…");
    this.waiting.textContent = this.#isReconnecting ? gettext("Reconnecting…") : text;
  }

  /** @param {Trouble} trouble */
  #showTrouble(trouble) {
    for (const [part, text] of Object.entries(MESSAGES[trouble])) {
      setText(this.trouble, `[data-trouble-${part}]`, text);
    }
    this.trouble.dataset.playerTrouble = trouble;
    this.#hideWaiting();
    this.trouble.hidden = false;
    // Reports listen to the element alone, whichever stream plays.
    this.video.dispatchEvent(new CustomEvent("trouble", { detail: trouble }));
  }

  #retry() {
    const { video } = this;
    this.#hideMessages();
    this.controller.focus();
    const wasPlaying = video.currentTime > 0 && !video.paused;
    this.#open(this.#position_s);
    if (wasPlaying) video.play().catch(() => {});
  }

  /**
   * Adopt added qualities, or the complete stream of a preview.
   * @param {string} source the complete stream has another address than the preview
   */
  #adoptQualities(source) {
    const { video, signal } = this;
    video.dataset.src = source;
    delete video.dataset.grows;
    this.#showWatchableShare();
    // A stream that is created later reads all qualities.
    if (!this.#stream || this.#stream.adoptQualities(source)) return;
    const reopen = () => this.#open(this.#position_s);
    if (video.paused) reopen();
    else video.addEventListener("pause", reopen, { once: true, signal });
  }
}
