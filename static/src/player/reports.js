/**
 * Reports of playback to the address in <video data-reports>: lines of CMCD v2 (CTA-5004-B) about
 * the media element, for any stream. The portal counts the time between two lines as played if the
 * first has the state `playing`; a line that ends playing therefore has the position before a seek.
 */
import { Outbox } from "./outbox.js";

const PLAYING_EVERY_MS = 10_000;
// The first request waits until ten seconds were played, so that it can count as a view.
const FIRST_SEND_MS = 12_000;
// Progress that shows playing without a `playing` event.
const PROGRESS_S = 0.1;
// A pause this close to the end belongs to the end.
const END_S = 0.1;
// A stream that stalls is nudged by less than this, or opened again at its position.
const NUDGE_S = 1;
/** States of playback in CMCD. */
const STATE = {
  starting: "s",
  playing: "p",
  seeking: "k",
  stalled: "r",
  paused: "a",
  ended: "e",
  failed: "f",
};
/** Events of CMCD, the causes of reports. */
const EVENT = { state: "ps", time: "t", error: "e" };
const TV = /TV\b|AppleTV|Web0S|CrKey|BRAVIA|Roku|\bAFT[A-Z]/;
const TABLET = /iPad|Tablet|Android(?!.*Mobile)/;

/** @param {HTMLVideoElement} video @param {AbortSignal} signal */
export function startReports(video, signal) {
  const { reports } = video.dataset;
  // The portal refuses reports from the origin of a sandboxed frame, which is that of no site.
  if (reports && globalThis.origin !== "null") new Reports(video, new Outbox(reports), signal);
}

class Reports {
  /** State of playback, one of `STATE`; empty before the first `play`. */
  #state = "";
  #hasPlayed = false;
  #started_ms = 0;
  /** Position that was shown last, at most a quarter of a second old; after a seek, its target. */
  #shown_s = 0;
  #lineCount = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {HTMLVideoElement} video @param {Outbox} outbox @param {AbortSignal} signal */
  constructor(video, outbox, signal) {
    this.video = video;
    this.outbox = outbox;
    this.constants = constantsOf(video);
    const interrupt = () => this.#state === STATE.playing && this.#enter(STATE.stalled);
    const isAtEnd = () => video.duration - video.currentTime < END_S;
    /** @type {Record<string, (event: any) => unknown>} */
    const handlers = {
      play: () => this.#hasPlayed || this.#enter(STATE.starting),
      // Native playback begins with a seek after this event.
      playing: () => video.seeking || this.#enter(STATE.playing),
      timeupdate: () => this.#follow(),
      // Firefox also waits at the end.
      waiting: () => video.seeking || isAtEnd() || interrupt(),
      // The stream is opened again, which pauses without an event.
      emptied: interrupt,
      seeking: () => this.#seek(),
      seeked: () => this.#state === STATE.seeking && video.paused && this.#enter(STATE.paused),
      pause: () => video.ended || this.#enter(STATE.paused),
      ended: () => this.#enter(STATE.ended),
      ratechange: () => this.#state === STATE.playing && this.#report(EVENT.time),
      trouble: ({ detail }) => this.#enter(STATE.failed, EVENT.error, `ec=("${detail}")`),
    };
    for (const [name, handle] of Object.entries(handlers)) {
      video.addEventListener(name, handle, { signal });
    }
    const leave = () => {
      if (this.#state === STATE.playing) this.#report(EVENT.time);
      outbox.flush();
    };
    const hide = () => document.visibilityState === "hidden" && leave();
    document.addEventListener("visibilitychange", hide, { signal });
    window.addEventListener("pagehide", leave, { signal });
    signal.addEventListener("abort", () => {
      leave();
      clearTimeout(this.#timer);
      outbox.close();
    });
  }

  /** Return whether the element shows its position, as opposed to the target of a seek. */
  get #isShown() {
    return this.video.readyState > 0 && !this.video.seeking;
  }

  #follow() {
    const { currentTime } = this.video;
    if (!this.#isShown || this.video.paused) return;
    if (this.#state === STATE.playing) this.#shown_s = currentTime;
    else if (currentTime > this.#shown_s + PROGRESS_S) this.#enter(STATE.playing);
  }

  #seek() {
    const { currentTime } = this.video;
    const moved_s = Math.abs(currentTime - this.#shown_s);
    const isNudge = this.#state === STATE.stalled && moved_s < NUDGE_S;
    if (this.#hasPlayed && !isNudge) this.#enter(STATE.seeking);
    this.#shown_s = currentTime;
  }

  /**
   * Return whether reports may begin with a state. Playback that begins by itself waits for a
   * gesture of the viewer.
   *
   * @param {string} state
   */
  #mayBegin(state) {
    const hasGesture = navigator.userActivation?.hasBeenActive ?? true;
    const isPlaying = state === STATE.playing && !this.video.paused;
    return hasGesture && (state === STATE.starting || isPlaying);
  }

  /** Report another state. @param {string} state */
  #enter(state, event = EVENT.state, cause = "") {
    if (state === this.#state || (!this.#state && !this.#mayBegin(state))) return;
    const hasStarted = this.#state === STATE.starting;
    this.#state = state;
    if (state === STATE.starting) this.#started_ms = performance.now();
    const isFirst = state === STATE.playing && !this.#hasPlayed;
    this.#hasPlayed ||= isFirst;
    const startup = `msd=${Math.round(performance.now() - this.#started_ms)}`;
    this.#report(event, isFirst && hasStarted ? startup : cause);
    if (isFirst) this.outbox.sendIn(FIRST_SEND_MS);
    if (state === STATE.ended || state === STATE.failed) this.outbox.sendIn(0);
  }

  /** Add a line, and others while the video plays. @param {string} event */
  #report(event, member = "") {
    const { currentTime, playbackRate, videoWidth, videoHeight } = this.video;
    if (this.#isShown && this.#state !== STATE.seeking) this.#shown_s = currentTime;
    const height = Math.min(videoWidth, videoHeight);
    const members = [
      ...this.constants,
      `e=${event},sta=${this.#state},sn=${this.#lineCount++}`,
      `pt=${Math.round(this.#shown_s * 1000)}`,
      `ts=${Math.round(performance.timeOrigin + performance.now())}`,
      height > 0 && `portal-height="${height}"`,
      playbackRate !== 1 && `pr=${playbackRate.toFixed(2)}`,
      member,
    ];
    this.outbox.add(members.filter(Boolean).join(","));
    clearTimeout(this.#timer);
    if (this.#state !== STATE.playing) return;
    this.#timer = setTimeout(() => this.#report(EVENT.time), PLAYING_EVERY_MS);
  }
}

/** Return the members that are the same in all lines. @param {HTMLVideoElement} video */
function constantsOf({ dataset }) {
  // Insecure contexts have no `crypto.randomUUID`.
  const session = crypto.getRandomValues(new Uint32Array(4)).join("-");
  const place = "embedded" in dataset ? "embed" : "page";
  const site = document.referrer && new URL(document.referrer).host;
  const isOther = site && site !== location.host;
  return [
    `v=2,cid="${dataset.video}",sid="${session}"`,
    `portal-place=${place},portal-device=${deviceClass(navigator)}`,
    isOther && `portal-site="${site.slice(0, 64)}"`,
  ];
}

/** @param {Navigator} navigator */
function deviceClass({ userAgent, maxTouchPoints }) {
  if (TV.test(userAgent)) return "tv";
  // iPads claim to be Macs, which have no touch screens.
  const isMac = userAgent.includes("Macintosh");
  if (TABLET.test(userAgent) || (isMac && maxTouchPoints > 1)) return "tablet";
  return /Mobi/.test(userAgent) ? "phone" : "desktop";
}
