/**
 * Recorder of screen, camera, microphone and shared sound into one film that is written while it is
 * recorded. `Recorder` keeps the time; pictures come from `composition.js`, sound from `sound.js`,
 * and `film.js` encodes and writes.
 */

import { canEncodeSound, prepareSound } from "./aac.js";
import { Composition } from "./composition.js";
import { canEncodePicture, Film } from "./film.js";
import { Mixer, SoundTrack } from "./sound.js";

export { bubbleCircle } from "./composition.js";
export { listDevices, openCamera, openMicrophone, openScreen } from "./sources.js";

/**
 * What to record; at least one of screen and camera. Microphone and tab sound are optional. The
 * streams belong to the page, which stops their tracks.
 * @typedef {{ screen: MediaStream | null, camera: MediaStream | null,
 *   microphone: MediaStream | null, framesPerSecond: 30 | 60 }} Sources
 *
 * @typedef {import("./film.js").Sink} Sink
 * @typedef {import("./composition.js").Bubble} Bubble
 *
 * Condition that people should know of. `since_s` is the recorded time at which it began.
 * @typedef {"silence" | "black" | "unplugged" | "screen_ended"} WarningKind
 * @typedef {"screen" | "camera" | "microphone"} Device
 * @typedef {{ kind: WarningKind, device: Device, since_s: number, isOver: boolean }} Warning
 *
 * What a browser can do. Sound is encoded by the browser or by WASM, or not recorded.
 * @typedef {{ screen: boolean, camera: boolean, microphone: boolean,
 *   sound: "aac" | "aac-wasm" | null, video: boolean }} Capabilities
 */

const TICK_MS = 100;
/** Time for which a still picture stays before it is repeated. Fragments wait for a key frame. */
const REPEAT_S = 0.5;
const KEY_FRAME_INTERVAL_S = 2;
/** Share of a frame's duration after which the next one may come. */
const EARLIEST = 0.8;
/** Length of sound that may be missing before it is replaced by silence. */
const MISSING_SOUND_S = 1;
/** Time without any sign of life after which the computer was asleep. */
const ASLEEP_MS = 10_000;
/** Length of sound that may be missing at the end. */
const LATE_SOUND_S = 0.05;
const FIRST_FRAME_TIMEOUT_MS = 10_000;

const SILENCE_PEAK = 0.001;
const WARNING_AFTER_MS = 5000;
const BLACK_CHECK_MS = 1000;

/** Return what this browser can do. @returns {Promise<Capabilities>} */
export async function capabilities() {
  const devices = navigator.mediaDevices;
  const hasSound = "AudioContext" in globalThis;
  const hasAac = hasSound && (await canEncodeSound());
  return {
    screen: Boolean(devices?.getDisplayMedia),
    camera: Boolean(devices?.getUserMedia),
    microphone: Boolean(devices?.getUserMedia) && hasSound,
    sound: hasAac ? "aac" : hasSound ? "aac-wasm" : null,
    video: "VideoEncoder" in globalThis && (await canEncodePicture()),
  };
}

/** Time of a film: the page's clock without pauses. */
class FilmClock {
  #zero_ms = performance.now();
  /** @type {number | null} */
  #paused_ms = null;

  get isPaused() {
    return this.#paused_ms !== null;
  }

  /** Whether a time is part of the film. @param {number} page_ms */
  covers(page_ms) {
    return page_ms < (this.#paused_ms ?? Number.POSITIVE_INFINITY);
  }

  /** Return the time in the film. @param {number} [page_ms] by the page's clock */
  at(page_ms = performance.now()) {
    return (Math.min(page_ms, this.#paused_ms ?? page_ms) - this.#zero_ms) / 1000;
  }

  pause() {
    this.#paused_ms ??= performance.now();
  }

  resume() {
    if (this.#paused_ms !== null) this.skip(performance.now() - this.#paused_ms);
    this.#paused_ms = null;
  }

  /** Leave out a time. @param {number} span_ms */
  skip(span_ms) {
    this.#zero_ms += span_ms;
  }
}

/**
 * Recorder of one film. It shows its picture and measures its level from its creation, and writes
 * from `start` to `stop`. Events: "level" (detail: peak from 0 to 1), "warning" (detail: `Warning`),
 * "failed" (detail: Error; what was written before plays).
 */
export class Recorder extends EventTarget {
  #sources;
  #sink;
  #composition;
  #mixer;
  #end = new AbortController();
  /** @type {FilmClock | null} */
  #clock = null;
  /** @type {Film | null} */
  #film = null;
  /** @type {SoundTrack | null} */
  #soundTrack = null;
  /** @type {Promise<void> | null} */
  #starting = null;
  /** @type {Promise<{ duration_s: number }> | null} */
  #stopping = null;
  #alive_ms = performance.now();
  #check_ms = 0;
  #blackCheck_ms = 0;
  /**
   * Conditions by kind and device: since when by the page's clock, and what was said of them.
   * @type {Map<string, { since_ms: number, warning: Warning | null }>}
   */
  #conditions = new Map();
  #watchedMicrophone = new AbortController();

  /** @param {Sources} sources @param {Sink} sink */
  constructor(sources, sink) {
    super();
    this.#sources = sources;
    this.#sink = sink;
    const { signal } = this.#end;
    this.#composition = new Composition(
      sources,
      (captured_ms) => this.#addPicture(captured_ms),
      signal,
    );
    this.#mixer = new Mixer(sources, (chunk) => this.#addSound(chunk), signal);
    this.#watch("screen", signal);
    this.#watch("camera", signal);
    this.#watch("microphone", this.#watchedMicrophone.signal);
    // In good time, so that the recording starts at once.
    if (this.#hasSound()) prepareSound(this.#mixer.sampleRate).catch(() => {});
    const timer = setInterval(() => this.#advance(), TICK_MS);
    signal.addEventListener("abort", () => clearInterval(timer));
  }

  /** What is recorded, for a video element. */
  get preview() {
    return this.#composition.preview;
  }

  /** Whether it began with a screen, which may have ended. */
  get hasScreen() {
    return Boolean(this.#sources.screen);
  }

  /** @type {Bubble} */
  get bubble() {
    return this.#composition.bubble;
  }

  set bubble(bubble) {
    this.#composition.bubble = bubble;
  }

  /** Recorded time, without pauses and sleep of the computer. */
  get duration_s() {
    // The first to ask after a sleep may be the page.
    this.#awake();
    return Math.max(0, this.#clock?.at() ?? 0);
  }

  /** Begin the film. Each prefix of the written bytes that ends with a fragment plays. */
  start() {
    this.#starting ??= this.#begin();
    return this.#starting;
  }

  pause() {
    this.#awake();
    this.#clock?.pause();
  }

  /** Go on after a pause, which leaves no gap in the film. */
  resume() {
    this.#clock?.resume();
    this.#soundTrack?.align();
  }

  /** Finish the film. @returns {Promise<{ duration_s: number }>} */
  stop() {
    this.#stopping ??= this.#finish();
    return this.#stopping;
  }

  /** Take another microphone, if the film has sound. @param {MediaStream | null} stream */
  replaceMicrophone(stream) {
    this.#watchedMicrophone.abort();
    this.#watchedMicrophone = new AbortController();
    this.#sources = { ...this.#sources, microphone: stream };
    this.#mixer.setMicrophone(stream);
    this.#watch("microphone", this.#watchedMicrophone.signal);
    this.#report("unplugged", "microphone", false);
  }

  async #begin() {
    await this.#mixer.resume();
    const frame = await this.#firstFrame();
    const { width, height } = /** @type {import("./composition.js").Size} */ (
      this.#composition.size
    );
    const { framesPerSecond } = this.#sources;
    const sampleRate = this.#hasSound() ? this.#mixer.sampleRate : null;
    const format = { width, height, framesPerSecond, sampleRate };
    const film = new Film(format, this.#sink, (error) => this.#fail(error));
    await film.begin(frame);
    if (sampleRate) this.#soundTrack = new SoundTrack(sampleRate);
    this.#film = film;
    this.#clock = new FilmClock();
  }

  #hasSound() {
    const { screen, microphone } = this.#sources;
    return [screen, microphone].some((stream) => stream?.getAudioTracks().length);
  }

  /** Wait for the first picture. @returns {Promise<VideoFrame>} */
  async #firstFrame() {
    const until_ms = performance.now() + FIRST_FRAME_TIMEOUT_MS;
    while (performance.now() < until_ms) {
      const frame = this.#composition.takeFrame();
      if (frame) return frame;
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    }
    throw new Error("The screen or camera shows no picture.");
  }

  async #finish() {
    await this.#starting?.catch(() => {});
    this.pause();
    const end_s = this.duration_s;
    await this.#awaitSound(end_s);
    this.#extendSound(end_s - LATE_SOUND_S);
    const frame = this.#composition.takeFrame();
    this.#end.abort();
    this.#watchedMicrophone.abort();
    if (this.#film) await this.#film.finish(frame, end_s);
    else frame?.close();
    return { duration_s: end_s };
  }

  /** Wait for the sound up to a time, which a busy page gets late. @param {number} end_s */
  async #awaitSound(end_s) {
    const until_ms = performance.now() + MISSING_SOUND_S * 1000;
    const isMissing = () => this.#soundTrack && this.#soundTrack.end_s < end_s - LATE_SOUND_S;
    while (isMissing() && performance.now() < until_ms) {
      await new Promise((resolve) => setTimeout(resolve, TICK_MS / 10));
    }
  }

  /** @param {Error} error */
  #fail(error) {
    this.#clock?.pause();
    this.#soundTrack = null;
    this.#end.abort();
    this.#dispatch("failed", error);
  }

  /** Record the current picture. @param {number} captured_ms @param {number} [wait_s] least time since the last one */
  #addPicture(captured_ms, wait_s = EARLIEST / this.#sources.framesPerSecond) {
    this.#awake();
    if (!this.#film || !this.#clock?.covers(captured_ms)) {
      this.#composition.show();
      return;
    }
    const at_s = this.#clock.at(captured_ms);
    if (at_s - this.#film.lastFrame_s < wait_s) return;
    const frame = this.#composition.takeFrame();
    if (frame) this.#film.addFrame(frame, at_s);
  }

  /** @param {import("./frames.js").Chunk} chunk */
  #addSound({ samples, captured_ms }) {
    this.#advance();
    if (!this.#film || !this.#soundTrack || !this.#clock?.covers(captured_ms)) return;
    const length = samples.length / 2;
    const at_s = this.#clock.at(captured_ms) - this.#film.soundDelay_s;
    const { start_s, skipped, isMoved } = this.#soundTrack.place(at_s, length);
    const kept = skipped ? samples.filter((_, index) => index % length >= skipped) : samples;
    this.#film.addSound(kept, start_s);
    if (isMoved) this.#mixer.reconnect();
  }

  /** Repeat a still picture, at the latest where a key frame is due. */
  #repeatPicture() {
    if (!this.#film || !this.#clock || this.#clock.isPaused) return;
    const interval = (/** @type {number} */ at_s) => Math.floor(at_s / KEY_FRAME_INTERVAL_S);
    const isKeyFrameDue = interval(this.#clock.at()) > interval(this.#film.lastFrame_s);
    this.#addPicture(performance.now(), isKeyFrameDue ? 0 : REPEAT_S);
  }

  /** Let silence take the place of sound that doesn't come, because the film waits for it. */
  #replaceMissingSound() {
    if (!this.#clock || this.#clock.isPaused || !this.#soundTrack) return;
    const missing_s = this.#clock.at() - this.#soundTrack.end_s;
    if (missing_s > MISSING_SOUND_S) this.#extendSound(this.#clock.at() - MISSING_SOUND_S / 2);
  }

  /** @param {number} until_s */
  #extendSound(until_s) {
    if (!this.#soundTrack) return;
    const { end_s } = this.#soundTrack;
    this.#film?.addSound(new Float32Array(2 * this.#soundTrack.extend(until_s)), end_s);
  }

  /** Leave out the time in which the computer was asleep. */
  #awake() {
    const now_ms = performance.now();
    const asleep_ms = now_ms - this.#alive_ms;
    this.#alive_ms = now_ms;
    if (asleep_ms < ASLEEP_MS || !this.#clock || this.#clock.isPaused) return;
    this.#clock.skip(asleep_ms);
    this.#soundTrack?.align();
  }

  /** Do what has no event of its own. Sound comes in steadily, while a hidden page's timers are slow. */
  #advance() {
    this.#awake();
    this.#composition.poll();
    this.#repeatPicture();
    if (performance.now() - this.#check_ms < TICK_MS) return;
    this.#check_ms = performance.now();
    this.#replaceMissingSound();
    this.#checkSound();
    this.#checkPicture();
  }

  #checkSound() {
    const peak = this.#mixer.measurePeak();
    this.#dispatch("level", peak);
    const isSilent = Boolean(this.#sources.microphone) && peak < SILENCE_PEAK;
    this.#report("silence", "microphone", isSilent, WARNING_AFTER_MS);
  }

  #checkPicture() {
    const now_ms = performance.now();
    if (now_ms - this.#blackCheck_ms < BLACK_CHECK_MS) return;
    this.#blackCheck_ms = now_ms;
    const device = this.#sources.screen ? "screen" : "camera";
    this.#report("black", device, this.#composition.isBlack(), WARNING_AFTER_MS);
  }

  /** Warn when a device or the screen ends. @param {Device} device @param {AbortSignal} signal */
  #watch(device, signal) {
    const stream = this.#sources[device];
    const tracks = device === "screen" ? stream?.getVideoTracks() : stream?.getTracks();
    const kind = device === "screen" ? "screen_ended" : "unplugged";
    for (const track of tracks ?? []) {
      track.addEventListener("ended", () => this.#report(kind, device, true), { signal });
    }
  }

  /**
   * Warn of a condition that has lasted, and say when it is over.
   * @param {WarningKind} kind @param {Device} device @param {boolean} isSo @param {number} after_ms
   */
  #report(kind, device, isSo, after_ms = 0) {
    const key = `${kind} ${device}`;
    const now_ms = performance.now();
    const condition = this.#conditions.get(key) ?? { since_ms: now_ms, warning: null };
    if (!isSo) {
      this.#conditions.delete(key);
      if (condition.warning) this.#dispatch("warning", { ...condition.warning, isOver: true });
      return;
    }
    this.#conditions.set(key, condition);
    if (condition.warning || now_ms - condition.since_ms < after_ms) return;
    const since_s = Math.max(0, this.#clock?.at(condition.since_ms) ?? 0);
    condition.warning = { kind, device, since_s, isOver: false };
    this.#dispatch("warning", condition.warning);
  }

  /** @param {string} type @param {unknown} detail */
  #dispatch(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
