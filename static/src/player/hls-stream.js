/**
 * Stream played by hls.js: recovers from network and media errors, fills the lists of qualities and
 * audio tracks, and adopts qualities that are added to the playlist during playback.
 *
 * Sends "trouble" (detail: its kind) when playback can't continue, "reconnecting" when it retries
 * by itself, and "recovered" when segments arrive again.
 */
import Hls from "hls.js";
import { Backoff } from "../retry.js";
import { clipOf } from "./clip.js";
import { saveSettings, settings } from "./saved-state.js";
import { fLoader } from "./segment-loader.js";
import { indexOfNearest, toAudioTrack, toRendition } from "./track-lists.js";
import { GONE_STATUSES, isGone } from "./troubles.js";

// Before play is pressed: enough to start immediately.
const BUFFER_AT_REST_S = 6;
// While playing: enough to bridge an outage, without fetching far more than is watched.
const BUFFER_S = 60;
const BACK_BUFFER_S = 60;
// A second decoder error within this time is not recovered from.
const RECOVERY_MS = 15_000;
// hls.js skips segments that it can't parse, up to the last one, and then waits without an error.
const UNREADABLE_LIMIT = 8;
const { ErrorDetails, ErrorTypes, Events } = Hls;
/** @type {string[]} */
const UNREADABLE = [ErrorDetails.FRAG_PARSING_ERROR, ErrorDetails.BUFFER_APPEND_ERROR];
/** @type {string[]} */
const UNSUPPORTED = [
  ErrorDetails.MANIFEST_INCOMPATIBLE_CODECS_ERROR,
  ErrorDetails.BUFFER_ADD_CODEC_ERROR,
  ErrorDetails.BUFFER_INCOMPATIBLE_CODECS_ERROR,
];
// Tracks that hls.js adds for captions inside the video stream (CEA-608).
const HLS_CAPTIONS = "track[src^='data:']";

export class HlsStream extends EventTarget {
  /** @type {Hls | null} */
  #hls = null;
  /** Instance that reads the playlist again while `#hls` plays. @type {Hls | null} */
  #successor = null;
  #backoff = new Backoff();
  /** Retry that waits for its pause or the network. @type {(() => void) | null} */
  #retry = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retryTimer;
  #recovered_ms = Number.NEGATIVE_INFINITY;
  /** Number of consecutive segments that couldn't be parsed. */
  #unreadableCount = 0;
  /** Whether `#hls` took over the buffer of another instance. */
  #isSuccessor = false;
  /** Chosen quality (720 for 720p), for all videos; 0 for automatic. */
  #quality = settings().quality ?? 0;

  /**
   * @param {HTMLVideoElement} video @param {import("./track-lists.js").TrackLists} lists
   * @param {AbortSignal} signal
   */
  constructor(video, { renditions, audioTracks }, signal) {
    super();
    this.video = video;
    this.source = video.dataset.src ?? "";
    this.signal = signal;
    this.playsElsewhere = !video.disableRemotePlayback;
    this.renditions = renditions;
    this.audioTracks = audioTracks;
    this.renditions.addEventListener("change", () => this.#switchQuality(), { signal });
    this.audioTracks.addEventListener("change", () => this.#switchAudio(), { signal });
    const clip = clipOf(video);
    const clip_s = clip ? clip.end_s - clip.start_s : BUFFER_S;
    // Little is fetched after the end of a clip.
    this.buffer_s = Math.max(Math.min(clip_s, BUFFER_S), BUFFER_AT_REST_S);
    const extendBuffer = () => Object.assign(this.#hls?.config ?? {}, bufferOptions(this.buffer_s));
    video.addEventListener("play", extendBuffer, { signal });
    window.addEventListener("online", () => this.#retryNow(), { signal });
  }

  /** Return the frame rate of the current quality. @returns {number | undefined} */
  get framesPerSecond() {
    const { levels = [], currentLevel = 0 } = this.#hls ?? {};
    return (levels[currentLevel] ?? levels[0])?.frameRate || undefined;
  }

  /** Start playback again. @param {number | null} at_s position; null for the start */
  open(at_s) {
    this.close();
    if (!Hls.isSupported()) return this.#reportTrouble("unsupported");
    this.#start({ startPosition: at_s ?? -1 });
  }

  /** @param {Partial<import("hls.js").HlsConfig>} options */
  #start(options) {
    const hls = this.#createHls(options);
    this.#hls = hls;
    this.#isSuccessor = false;
    this.#unreadableCount = 0;
    hls.attachMedia(this.video);
    hls.loadSource(this.source);
  }

  close() {
    this.#stopRetrying();
    this.#successor?.destroy();
    this.#hls?.destroy();
    this.#successor = this.#hls = null;
  }

  /**
   * Adopt added qualities, or the complete stream after a preview. hls.js reads a master playlist
   * once; a second instance reads it again and takes over the video with its buffer, so that
   * playback isn't interrupted.
   * @param {string} source @returns {boolean} false if the stream has to be opened again instead
   */
  adoptQualities(source) {
    const current = this.#hls;
    const isOther = source !== this.source;
    this.source = source;
    if (!current?.levels.length || this.#retry) return false;
    this.#successor?.destroy();
    const next = this.#createHls({
      autoStartLoad: false,
      abrEwmaDefaultEstimate: current.bandwidthEstimate,
      ...chosenTracks(current),
    });
    this.#successor = next;
    // A different address, because caches may hold the old playlist.
    const address = new URL(source, location.href);
    next.once(Events.MANIFEST_PARSED, () => this.#switchTo(current, next, isOther));
    address.searchParams.set("levels", String(current.levels.length + 1));
    next.loadSource(address.href);
    return true;
  }

  /**
   * Let the next instance take over the video from the current one.
   * @param {Hls} current @param {Hls} next @param {boolean} isOther whether it has another source
   */
  #switchTo(current, next, isOther) {
    if (this.#successor !== next || this.#hls !== current) return;
    this.#successor = null;
    if (!isOther && next.levels.length <= current.levels.length) return next.destroy();
    const height = current.levels[current.currentLevel]?.height;
    const transfer = current.transferMedia();
    current.destroy();
    // The new instance adds its own captions.
    for (const track of this.video.querySelectorAll(HLS_CAPTIONS)) track.remove();
    this.#hls = next;
    this.#isSuccessor = true;
    next.startLevel = next.levels.findIndex((level) => level.height === height);
    next.attachMedia(transfer ?? this.video);
    next.startLoad(this.video.currentTime);
    this.#listQualities(next);
  }

  /** @param {Partial<import("hls.js").HlsConfig>} options @returns {Hls} */
  #createHls(options) {
    const hls = new Hls({
      // The content security policy allows no worker made from a blob.
      enableWorker: false,
      fLoader,
      capLevelToPlayerSize: true,
      ...bufferOptions(this.video.paused ? BUFFER_AT_REST_S : this.buffer_s),
      backBufferLength: BACK_BUFFER_S,
      // The page has the captions as <track> elements.
      subtitleTrackController: undefined,
      subtitleStreamController: undefined,
      ...options,
    });
    hls.on(Events.MEDIA_ATTACHED, () => this.#offerRemotePlayback());
    hls.on(Events.ERROR, (_event, error) => this.#handleError(hls, error));
    hls.on(Events.MANIFEST_PARSED, () => this.#listQualities(hls));
    hls.on(Events.LEVELS_UPDATED, () => this.#listQualities(hls));
    hls.on(Events.AUDIO_TRACKS_UPDATED, () => this.#listAudio(hls));
    hls.on(Events.AUDIO_TRACK_SWITCHED, () => this.#listAudio(hls));
    hls.on(Events.FRAG_BUFFERED, (_event, { frag }) => this.#handleBuffered(hls, frag));
    keepTimesOfPlaylists(hls);
    return hls;
  }

  /**
   * Offer the stream's address to AirPlay devices, which request the stream themselves. Browsers
   * with a managed media source look for it among the <source> elements.
   */
  #offerRemotePlayback() {
    if (!this.playsElsewhere || !this.video.querySelector("source")) return;
    const source = document.createElement("source");
    source.type = "application/vnd.apple.mpegurl";
    source.src = this.source;
    this.video.append(source);
    // hls.js disables remote playback while there is no <source>.
    this.video.disableRemotePlayback = false;
  }

  /** @param {Hls} hls @param {import("hls.js").Fragment | import("hls.js").Part} frag */
  #handleBuffered(hls, { elementaryStreams: { video, audio, audiovideo } }) {
    // hls.js also sends this event for segments without samples.
    if (hls !== this.#hls || !(video || audio || audiovideo)) return;
    if (video || audiovideo) this.#unreadableCount = 0;
    this.#stopRetrying();
    this.dispatchEvent(new Event("recovered"));
  }

  /** @param {Hls} hls */
  #listQualities(hls) {
    if (hls !== this.#hls) return;
    const renditions = hls.levels.map(toRendition);
    const chosen = indexOfNearest(renditions, this.#quality);
    this.renditions.fill(renditions, chosen);
    if (chosen >= 0 && hls.nextLevel !== chosen) hls.nextLevel = chosen;
  }

  #switchQuality() {
    const { selectedIndex, items } = this.renditions;
    this.#quality = items[selectedIndex]?.name ?? 0;
    saveSettings({ quality: this.#quality });
    if (!this.#hls) return;
    // `nextLevel` switches at the end of a segment, but a successor doesn't know the segments in
    // the buffer that it took over.
    if (this.#isSuccessor) this.#hls.currentLevel = selectedIndex;
    else this.#hls.nextLevel = selectedIndex;
  }

  /** @param {Hls} hls */
  #listAudio(hls) {
    if (hls !== this.#hls) return;
    const tracks = hls.audioTracks.map((track, at) => toAudioTrack(this.audioTracks, at, track));
    this.audioTracks.fill(tracks, hls.audioTrack);
  }

  #switchAudio() {
    if (this.#hls) this.#hls.audioTrack = this.audioTracks.selectedIndex;
  }

  /** @param {Hls} hls @param {import("hls.js").ErrorData} error */
  #handleError(hls, error) {
    // If the successor fails, the current instance plays on; a reload shows the new qualities.
    if (hls === this.#successor && error.fatal) hls.destroy();
    if (hls !== this.#hls) return;
    const isNetwork = error.type === ErrorTypes.NETWORK_ERROR;
    if (!error.fatal) {
      if (isNetwork) this.dispatchEvent(new Event("reconnecting"));
      if (UNREADABLE.includes(error.details)) this.#unreadableCount += 1;
      if (this.#unreadableCount >= UNREADABLE_LIMIT) this.#reportTrouble("decode");
    } else if (isNetwork) this.#reconnect(hls, error.response?.code ?? 0);
    else this.#recoverDecoder(hls, error.details);
  }

  /** Retry after a network error. @param {Hls} hls @param {number} status 0 without a response */
  async #reconnect(hls, status) {
    const isRefused = GONE_STATUSES.includes(status);
    if (isRefused) {
      const isLost = await isGone(this.source, this.signal);
      if (hls !== this.#hls) return;
      if (isLost) return this.#reportTrouble("gone");
    }
    const hasBegun = hls.levels.length > 0;
    // Signed addresses expire; a playlist fetched again has fresh ones.
    this.#retry = () => (isRefused || !hasBegun ? this.#reopen(hls) : hls.startLoad());
    const pause_ms = this.#backoff.nextPause_ms();
    clearTimeout(this.#retryTimer);
    if (pause_ms !== null) this.#retryTimer = setTimeout(() => this.#retryNow(), pause_ms);
    if (pause_ms === null || !hasBegun) this.#reportTrouble("network");
    else this.dispatchEvent(new Event("reconnecting"));
  }

  #retryNow() {
    const retry = this.#retry;
    clearTimeout(this.#retryTimer);
    this.#retry = null;
    retry?.();
  }

  #stopRetrying() {
    clearTimeout(this.#retryTimer);
    this.#retry = null;
    this.#backoff = new Backoff();
  }

  /** Start a new instance at the same position. @param {Hls} hls the present one */
  #reopen(hls) {
    const { currentTime, paused } = this.video;
    const { startPosition } = hls.config;
    const hasBegun = hls.levels.length > 0;
    const options = hasBegun
      ? { startPosition: currentTime, ...chosenTracks(hls) }
      : { startPosition };
    hls.destroy();
    this.#start(options);
    if (!paused) this.video.play().catch(() => {});
  }

  /** @param {Hls} hls @param {string} details */
  #recoverDecoder(hls, details) {
    if (UNSUPPORTED.includes(details)) return this.#reportTrouble("unsupported");
    const now_ms = performance.now();
    if (now_ms - this.#recovered_ms < RECOVERY_MS) return this.#reportTrouble("decode");
    this.#recovered_ms = now_ms;
    hls.recoverMediaError();
  }

  /** @param {import("./troubles.js").Trouble} trouble */
  #reportTrouble(trouble) {
    if (trouble !== "network") this.#hls?.stopLoad();
    this.dispatchEvent(new CustomEvent("trouble", { detail: trouble }));
  }
}

/**
 * Keep the segments of a cut film at the times of its playlist. Films of version 0.5 delay their
 * picture by an edit list, which hls.js ignores. It moves the segments after one that it has loaded
 * by that delay; at each discontinuity that would delay the film.
 * @param {Hls} hls
 */
function keepTimesOfPlaylists(hls) {
  /** Durations of the segments of each playlist. @type {WeakMap<object, number[]>} */
  const durations = new WeakMap();
  hls.on(Events.LEVEL_LOADED, (_event, { details }) => {
    if (details.endCC === details.startCC) return;
    durations.set(
      details,
      details.fragments.map(({ duration }) => duration),
    );
  });
  hls.on(Events.LEVEL_PTS_UPDATED, (_event, { details }) => {
    let start_s = 0;
    for (const [index, duration_s] of (durations.get(details) ?? []).entries()) {
      details.fragments[index]?.setStart(start_s);
      details.fragments[index]?.setDuration(duration_s);
      start_s += duration_s;
    }
  });
}

/** Return the options for a buffer ahead of the playhead. @param {number} length_s */
function bufferOptions(length_s) {
  return { maxBufferLength: length_s, maxMaxBufferLength: length_s };
}

/** Return the options that select the same audio track in another instance. @param {Hls} hls */
function chosenTracks({ audioTracks, audioTrack }) {
  const { lang, name } = audioTracks[audioTrack] ?? {};
  return { audioPreference: name === undefined ? undefined : { lang, name } };
}
