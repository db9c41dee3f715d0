/**
 * Reports of playback to the address in <video data-reports>: lines of CMCD v2 (CTA-5004-B) about
 * the media element, for any stream. The portal counts the time between two lines as played if the
 * first has the state `p`; a line that ends playing therefore has the position before a seek.
 */
import { Outbox } from "./outbox.js";

const PLAYING_EVERY_MS = 10_000;
// Some playing is reported first: a view takes ten seconds.
const FIRST_SEND_MS = 12_000;
// Progress that shows playing without a `playing` event.
const PROGRESS_S = 0.1;
// A stream that stalls is nudged by less than this, or opened again at its position.
const NUDGE_S = 1;
const TV = /TV\b|AppleTV|Web0S|CrKey|BRAVIA|Roku|\bAFT[A-Z]/;
const TABLET = /iPad|Tablet|Android(?!.*Mobile)/;

/** @param {HTMLVideoElement} video @param {AbortSignal} signal */
export function startReports(video, signal) {
  const { reports } = video.dataset;
  if (reports) new Reports(video, new Outbox(reports), signal);
}

class Reports {
  /** State of playback as a token of CMCD; empty before the first `play`. */
  #state = "";
  #hasPlayed = false;
  #started_ms = 0;
  /** The position before a seek, at most a quarter of a second old, or its target. */
  #shown_s = 0;
  #lineCount = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {HTMLVideoElement} video @param {Outbox} outbox @param {AbortSignal} signal */
  constructor(video, outbox, signal) {
    this.video = video;
    this.outbox = outbox;
    this.constants = constantsOf(video);
    const interrupt = () => this.#state === "p" && this.#enter("r");
    const isAtEnd = () => video.duration - video.currentTime < PROGRESS_S;
    /** @type {Record<string, (event: any) => unknown>} */
    const handlers = {
      play: () => this.#hasPlayed || this.#enter("s"),
      // Native playback begins with a seek after this event.
      playing: () => video.seeking || this.#enter("p"),
      timeupdate: () => this.#follow(),
      // Firefox also waits at the end.
      waiting: () => video.seeking || isAtEnd() || interrupt(),
      // The stream is opened again, which pauses without an event.
      emptied: interrupt,
      seeking: () => this.#seek(),
      seeked: () => this.#state === "k" && video.paused && this.#enter("a"),
      pause: () => video.ended || this.#enter("a"),
      ended: () => this.#enter("e"),
      ratechange: () => this.#state === "p" && this.#report("t"),
      trouble: ({ detail }) => this.#enter("f", "e", `ec=("${detail}")`),
    };
    for (const [name, handle] of Object.entries(handlers)) {
      video.addEventListener(name, handle, { signal });
    }
    const leave = () => {
      if (this.#state === "p") this.#report("t");
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
    if (this.#state === "p") this.#shown_s = currentTime;
    else if (currentTime > this.#shown_s + PROGRESS_S) this.#enter("p");
  }

  #seek() {
    const { currentTime } = this.video;
    const isNudge = this.#state === "r" && Math.abs(currentTime - this.#shown_s) < NUDGE_S;
    if (this.#hasPlayed && !isNudge) this.#enter("k");
    this.#shown_s = currentTime;
  }

  /** Report another state. @param {string} state */
  #enter(state, event = "ps", cause = "") {
    if (state === this.#state || (!this.#state && state !== "s")) return;
    this.#state = state;
    if (state === "s") this.#started_ms = performance.now();
    const isFirst = state === "p" && !this.#hasPlayed;
    this.#hasPlayed ||= isFirst;
    const startup = `msd=${Math.round(performance.now() - this.#started_ms)}`;
    this.#report(event, isFirst ? startup : cause);
    if (isFirst) this.outbox.sendIn(FIRST_SEND_MS);
    if (state === "e" || state === "f") this.outbox.sendIn(0);
  }

  /** Add a line, and others while the video plays. @param {string} event */
  #report(event, member = "") {
    const { currentTime, playbackRate, videoWidth, videoHeight } = this.video;
    if (this.#isShown && this.#state !== "k") this.#shown_s = currentTime;
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
    if (this.#state !== "p") return;
    this.#timer = setTimeout(() => this.#report("t"), PLAYING_EVERY_MS);
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
