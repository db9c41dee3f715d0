/**
 * Plays the stream by hls.js: recovers from network and media errors, fills the lists of qualities
 * and audio tracks, and adopts qualities that are added to the playlist while it plays.
 *
 * Sends "trouble" (detail: its kind) when playback can't continue, "reconnecting" when it retries by
 * itself, and "recovered" when segments arrive again.
 */
import Hls from "hls.js";
import { Backoff } from "../backoff.js";
import { saveSettings, settings } from "./saved-state.js";
import { fLoader } from "./segment-loader.js";
import { asAudioTrack, asRendition, indexOfNearest } from "./track-lists.js";
import { isGone, REFUSALS } from "./troubles.js";

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
// Tracks that hls.js found inside the picture (CEA-608).
const OWN_CAPTIONS = "track[src^='data:']";

export class HlsStream extends EventTarget {
  /** @type {Hls | null} */
  #hls = null;
  /** @type {Hls | null} reads the playlist anew while `#hls` plays */
  #successor = null;
  #backoff = new Backoff();
  /** Called after a pause, or when the network is back. @type {(() => void) | null} */
  #retry = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #pause;
  #recovered_ms = Number.NEGATIVE_INFINITY;
  /** Consecutive segments that couldn't be parsed. */
  #unreadable = 0;
  /** Whether `#hls` took over a buffer that it didn't fetch itself. */
  #isSuccessor = false;
  /** Name of the chosen quality (720 for 720p), also from an earlier video; 0 for automatic. */
  #wanted = settings().quality ?? 0;

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
    const bufferMore = () => Object.assign(this.#hls?.config ?? {}, buffering(BUFFER_S));
    video.addEventListener("play", bufferMore, { signal });
    window.addEventListener("online", () => this.#retryNow(), { signal });
  }

  /** Return the frame rate of the current quality. @returns {number | undefined} */
  get framesPerSecond() {
    const { levels = [], currentLevel = 0 } = this.#hls ?? {};
    return (levels[currentLevel] ?? levels[0])?.frameRate || undefined;
  }

  /** @param {number | null} at_s where to start */
  open(at_s) {
    this.close();
    if (!Hls.isSupported()) return this.#fail("unsupported");
    this.#begin({ startPosition: at_s ?? -1 });
  }

  /** @param {Partial<import("hls.js").HlsConfig>} options */
  #begin(options) {
    const hls = this.#make(options);
    this.#hls = hls;
    this.#isSuccessor = false;
    this.#unreadable = 0;
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
   * @param {string} source @returns {boolean} false where the stream has to be opened anew instead
   */
  adoptQualities(source) {
    const old = this.#hls;
    const isOther = source !== this.source;
    this.source = source;
    if (!old?.levels.length || this.#retry) return false;
    this.#successor?.destroy();
    const next = this.#make({
      autoStartLoad: false,
      abrEwmaDefaultEstimate: old.bandwidthEstimate,
      ...chosenTracks(old),
    });
    this.#successor = next;
    // A different address, because caches may hold the old playlist.
    const address = new URL(source, location.href);
    next.once(Events.MANIFEST_PARSED, () => this.#succeed(old, next, isOther));
    address.searchParams.set("levels", String(old.levels.length + 1));
    next.loadSource(address.href);
    return true;
  }

  /** @param {Hls} old @param {Hls} next @param {boolean} isOther */
  #succeed(old, next, isOther) {
    if (this.#successor !== next || this.#hls !== old) return;
    this.#successor = null;
    if (!isOther && next.levels.length <= old.levels.length) return next.destroy();
    const height = old.levels[old.currentLevel]?.height;
    const transfer = old.transferMedia();
    old.destroy();
    // The new instance adds its own captions.
    for (const track of this.video.querySelectorAll(OWN_CAPTIONS)) track.remove();
    this.#hls = next;
    this.#isSuccessor = true;
    next.startLevel = next.levels.findIndex((level) => level.height === height);
    next.attachMedia(transfer ?? this.video);
    next.startLoad(this.video.currentTime);
    this.#listQualities(next);
  }

  /** @param {Partial<import("hls.js").HlsConfig>} options @returns {Hls} */
  #make(options) {
    const hls = new Hls({
      // The content security policy allows no worker made from a blob.
      enableWorker: false,
      fLoader,
      capLevelToPlayerSize: true,
      ...buffering(this.video.paused ? BUFFER_AT_REST_S : BUFFER_S),
      backBufferLength: BACK_BUFFER_S,
      // The page has them as tracks.
      subtitleTrackController: undefined,
      subtitleStreamController: undefined,
      ...options,
    });
    hls.on(Events.MEDIA_ATTACHED, () => this.#offerAlternative());
    hls.on(Events.ERROR, (_event, error) => this.#failed(hls, error));
    hls.on(Events.MANIFEST_PARSED, () => this.#listQualities(hls));
    hls.on(Events.LEVELS_UPDATED, () => this.#listQualities(hls));
    hls.on(Events.AUDIO_TRACKS_UPDATED, () => this.#listAudio(hls));
    hls.on(Events.AUDIO_TRACK_SWITCHED, () => this.#listAudio(hls));
    hls.on(Events.FRAG_BUFFERED, (_event, { frag }) => this.#buffered(hls, frag));
    return hls;
  }

  /**
   * An AirPlay device can't take the segments that arrive here; it requests the stream itself.
   * Browsers with a managed media source look for its address among the <source> elements.
   */
  #offerAlternative() {
    if (!this.playsElsewhere || !this.video.querySelector("source")) return;
    const source = document.createElement("source");
    source.type = "application/vnd.apple.mpegurl";
    source.src = this.source;
    this.video.append(source);
    // hls.js disables it while there's no alternative.
    this.video.disableRemotePlayback = false;
  }

  /** @param {Hls} hls @param {import("hls.js").Fragment | import("hls.js").Part} frag */
  #buffered(hls, { elementaryStreams: { video, audio, audiovideo } }) {
    // hls.js also sends this event for segments without samples.
    if (hls !== this.#hls || !(video || audio || audiovideo)) return;
    if (video || audiovideo) this.#unreadable = 0;
    this.#stopRetrying();
    this.dispatchEvent(new Event("recovered"));
  }

  /** @param {Hls} hls */
  #listQualities(hls) {
    if (hls !== this.#hls) return;
    const renditions = hls.levels.map(asRendition);
    const chosen = indexOfNearest(renditions, this.#wanted);
    this.renditions.fill(renditions, chosen);
    if (chosen >= 0 && hls.nextLevel !== chosen) hls.nextLevel = chosen;
  }

  #switchQuality() {
    const { selectedIndex, items } = this.renditions;
    this.#wanted = items[selectedIndex]?.name ?? 0;
    saveSettings({ quality: this.#wanted });
    if (!this.#hls) return;
    // Switches at the end of the segment, which a successor doesn't know of its inherited buffer.
    if (this.#isSuccessor) this.#hls.currentLevel = selectedIndex;
    else this.#hls.nextLevel = selectedIndex;
  }

  /** @param {Hls} hls */
  #listAudio(hls) {
    if (hls !== this.#hls) return;
    const tracks = hls.audioTracks.map((track, at) => asAudioTrack(this.audioTracks, at, track));
    this.audioTracks.fill(tracks, hls.audioTrack);
  }

  #switchAudio() {
    if (this.#hls) this.#hls.audioTrack = this.audioTracks.selectedIndex;
  }

  /** @param {Hls} hls @param {import("hls.js").ErrorData} error */
  #failed(hls, error) {
    // Without its successor the current instance plays on; a reload shows the new qualities.
    if (hls === this.#successor && error.fatal) hls.destroy();
    if (hls !== this.#hls) return;
    const isNetwork = error.type === ErrorTypes.NETWORK_ERROR;
    if (!error.fatal) {
      if (isNetwork) this.dispatchEvent(new Event("reconnecting"));
      if (UNREADABLE.includes(error.details)) this.#unreadable += 1;
      if (this.#unreadable >= UNREADABLE_LIMIT) this.#fail("decode");
    } else if (isNetwork) this.#reconnect(hls, error.response?.code ?? 0);
    else this.#recoverDecoder(hls, error.details);
  }

  /** @param {Hls} hls @param {number} status what the server answered, if it did */
  async #reconnect(hls, status) {
    const isRefused = REFUSALS.includes(status);
    if (isRefused) {
      const isLost = await isGone(this.source, this.signal);
      if (hls !== this.#hls) return;
      if (isLost) return this.#fail("gone");
    }
    const hasBegun = hls.levels.length > 0;
    // Signed addresses expire; a playlist fetched again has fresh ones.
    this.#retry = () => (isRefused || !hasBegun ? this.#reopen(hls) : hls.startLoad());
    const pause_ms = this.#backoff.pause_ms();
    clearTimeout(this.#pause);
    if (pause_ms !== null) this.#pause = setTimeout(() => this.#retryNow(), pause_ms);
    if (pause_ms === null || !hasBegun) this.#fail("network");
    else this.dispatchEvent(new Event("reconnecting"));
  }

  #retryNow() {
    const retry = this.#retry;
    clearTimeout(this.#pause);
    this.#retry = null;
    retry?.();
  }

  #stopRetrying() {
    clearTimeout(this.#pause);
    this.#retry = null;
    this.#backoff = new Backoff();
  }

  /** @param {Hls} hls */
  #reopen(hls) {
    const { currentTime, paused } = this.video;
    const { startPosition } = hls.config;
    const hasBegun = hls.levels.length > 0;
    const options = hasBegun
      ? { startPosition: currentTime, ...chosenTracks(hls) }
      : { startPosition };
    hls.destroy();
    this.#begin(options);
    if (!paused) this.video.play().catch(() => {});
  }

  /** @param {Hls} hls @param {string} details */
  #recoverDecoder(hls, details) {
    if (UNSUPPORTED.includes(details)) return this.#fail("unsupported");
    const now_ms = performance.now();
    if (now_ms - this.#recovered_ms < RECOVERY_MS) return this.#fail("decode");
    this.#recovered_ms = now_ms;
    hls.recoverMediaError();
  }

  /** @param {import("./troubles.js").Trouble} trouble */
  #fail(trouble) {
    if (trouble !== "network") this.#hls?.stopLoad();
    this.dispatchEvent(new CustomEvent("trouble", { detail: trouble }));
  }
}

/** @param {number} length_s how far to fetch ahead of the playhead */
function buffering(length_s) {
  return { maxBufferLength: length_s, maxMaxBufferLength: length_s };
}

/** Return the chosen audio track, for the instance that replaces this one. @param {Hls} hls */
function chosenTracks({ audioTracks, audioTrack }) {
  const { lang, name } = audioTracks[audioTrack] ?? {};
  return { audioPreference: name === undefined ? undefined : { lang, name } };
}
