/**
 * Starts <video data-player data-src>: controls by media-chrome, the stream by hls.js. Both scripts
 * are fetched when a page has a player; until then it shows the poster.
 */

import { element, setText } from "../dom.js";
import { offerCaptions } from "./caption-tracks.js";
import { drawCaptions } from "./captions.js";
import { listenToKeys, listenToTaps, pictureSign } from "./input.js";
import { keysDialog, mendMenus } from "./menus.js";
import { isNative, NativeStream } from "./native-stream.js";
import { keepPosition, rememberCaptions, restoreSettings, startPosition_s } from "./saved-state.js";
import { giveTrackLists } from "./track-lists.js";
import { WORDS } from "./troubles.js";

/** @typedef {import("./troubles.js").Trouble} Trouble */

/** @type {import("../lifecycle.js").Start} */
export function startPlayer(video, signal) {
  const box = video.closest(".player");
  if (!(video instanceof HTMLVideoElement) || !(box instanceof HTMLElement)) return;
  return new Player(video, box, signal).start();
}

// Shorter waits are shown only by the line at the player's foot.
const PATIENCE_MS = 2_000;
// Tolerance between the buffered and the total length.
const END_S = 0.05;

class Player {
  /** @type {import("./hls-stream.js").HlsStream | NativeStream | null} */
  #stream = null;
  /** Whether the last requested segment did not arrive. */
  #isCutOff = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #patience;

  /** @param {HTMLVideoElement} video @param {HTMLElement} box @param {AbortSignal} signal */
  constructor(video, box, signal) {
    this.video = video;
    this.box = box;
    this.signal = signal;
    this.lists = giveTrackLists(video);
    this.controller = element(box, "media-controller");
    this.trouble = element(box, "[data-player-trouble]");
    this.waiting = element(box, "[data-player-waiting]");
    signal.addEventListener("abort", () => this.#close());
    const retry = this.trouble.querySelector("button");
    retry?.addEventListener("click", () => this.#retry(), { signal });
    video.addEventListener("playing", () => this.#isWell(), { signal });
    video.addEventListener("canplay", () => this.#endWait(), { signal });
    for (const name of ["waiting", "seeking"]) {
      video.addEventListener(name, () => this.#expectMore(), { signal });
    }
    const adopt = (/** @type {any} */ event) => this.#adoptQualities(event.detail);
    document.body.addEventListener("quality-added", adopt, { signal });
    const add = (/** @type {any} */ event) => this.#addThumbnails(event.detail);
    document.body.addEventListener("storyboard-made", add, { signal });
  }

  async start() {
    const { video, signal, controller } = this;
    // Only an embedded player reads options from its address, which the embedding site chose.
    const query = new URLSearchParams("embedded" in video.dataset ? location.search : "");
    if (query.get("muted") === "1") video.muted = true;
    restoreSettings(video, signal);
    keepPosition(video, signal);
    rememberCaptions(controller, video, signal);
    drawCaptions(element(controller, "[data-player-captions]"), video, signal);
    offerCaptions(video, signal);
    const showSign = pictureSign(element(controller, "[data-player-sign]"), signal);
    const actions = {
      press: (/** @type {string} */ name) => element(controller, name).click(),
      ...keysDialog(this.box, controller, signal),
      framesPerSecond: () => this.#stream?.framesPerSecond,
      showSign,
    };
    listenToKeys(controller, video, actions, signal);
    listenToTaps(controller, video, showSign, signal);
    await this.#open(startPosition_s(video));
    if (query.get("autoplay") === "1") video.play().catch(() => {}); // browsers may refuse to, with sound
  }

  /** Return the position, or the start position before the video is loaded. */
  get #position_s() {
    return this.video.currentTime || startPosition_s(this.video);
  }

  /** @param {number | null} at_s */
  async #open(at_s) {
    try {
      this.#stream ??= await this.#makeStream();
    } catch {
      // The scripts of controls and stream failed to load.
      return this.#show("network");
    }
    if (this.signal.aborted) this.#stream.close();
    else this.#stream.open(at_s);
  }

  async #makeStream() {
    const { video, signal } = this;
    const [{ HlsStream }] = await Promise.all([import("./hls-stream.js"), import("./controls.js")]);
    const Stream = isNative(video) ? NativeStream : HlsStream;
    const stream = new Stream(video, this.lists, signal);
    stream.addEventListener("recovered", () => this.#recovered(), { signal });
    stream.addEventListener("reconnecting", () => this.#reconnecting(), { signal });
    const show = (/** @type {any} */ event) => this.#show(event.detail);
    stream.addEventListener("trouble", show, { signal });
    mendMenus(this.controller, signal);
    return stream;
  }

  /**
   * Add the storyboard, which may be created after the page and after the video is ready.
   * @param {string} url
   */
  #addThumbnails(url) {
    if (this.video.querySelector("track[label=thumbnails]")) return;
    const track = document.createElement("track");
    Object.assign(track, { kind: "metadata", label: "thumbnails", src: url, default: true });
    this.video.append(track);
    track.track.mode = "hidden";
  }

  #close() {
    clearTimeout(this.#patience);
    this.#stream?.close();
  }

  /** Return whether the buffer ends soon; a longer one needs no message about missing data. */
  get #isShort() {
    const { currentTime, duration, buffered, readyState, dataset } = this.video;
    const last = buffered.length - 1;
    // At the end browsers lack data, too, and don't always say that it's the end.
    const isTheEnd =
      last >= 0 && buffered.start(last) <= currentTime && buffered.end(last) >= duration - END_S;
    if (isTheEnd && !("grows" in dataset)) return false;
    return this.trouble.hidden && readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
  }

  #endWait() {
    clearTimeout(this.#patience);
    this.waiting.textContent = "";
  }

  #isWell() {
    this.trouble.hidden = true;
    this.#endWait();
  }

  #recovered() {
    this.#isCutOff = false;
    this.#isWell();
    // The arrived data may be sound alone, or of another time.
    if (!this.video.paused || this.video.seeking) this.#expectMore();
  }

  #reconnecting() {
    this.#isCutOff = true;
    this.#sayWhatIsWaitedFor();
  }

  #expectMore() {
    clearTimeout(this.#patience);
    this.#patience = setTimeout(() => this.#sayWhatIsWaitedFor(), PATIENCE_MS);
  }

  #sayWhatIsWaitedFor() {
    if (!this.#isShort) return;
    const grows = "grows" in this.video.dataset;
    const words = grows ? "Waiting for the next part to be processed…" : "Waiting for the video…";
    this.waiting.textContent = this.#isCutOff ? "Reconnecting…" : words;
  }

  /** @param {Trouble} trouble */
  #show(trouble) {
    for (const [part, words] of Object.entries(WORDS[trouble])) {
      setText(this.trouble, `[data-trouble-${part}]`, words);
    }
    this.trouble.dataset.playerTrouble = trouble;
    this.#endWait();
    this.trouble.hidden = false;
  }

  #retry() {
    const { video } = this;
    this.#isWell();
    this.controller.focus();
    const isToPlay = video.currentTime > 0 && !video.paused;
    this.#open(this.#position_s);
    if (isToPlay) video.play().catch(() => {});
  }

  /** @param {string} source what is watched while it is made has another address when it is ready */
  #adoptQualities(source) {
    const { video, signal } = this;
    video.dataset.src = source;
    delete video.dataset.grows;
    // A later stream reads them from its start.
    if (!this.#stream || this.#stream.adoptQualities(source)) return;
    const reopen = () => this.#open(this.#position_s);
    if (video.paused) reopen();
    else video.addEventListener("pause", reopen, { once: true, signal });
  }
}
