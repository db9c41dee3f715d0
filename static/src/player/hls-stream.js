/**
 * Plays the stream by hls.js: keeps it going through network and media errors, fills the lists
 * of qualities and audio tracks, and takes up qualities that were added to the playlist.
 *
 * Sends "trouble" (detail: what kind) when it can't go on, "reconnecting" when it tries again by
 * itself, and "recovered" when it is going again.
 */
import Hls from "hls.js";
import { Backoff } from "../backoff.js";
import { saveSettings, settings } from "./saved-state.js";
import { asAudioTrack, asRendition, indexOfNearest } from "./track-lists.js";
import { lookFor, REFUSALS } from "./troubles.js";

// Until someone presses play just enough is fetched to begin at once.
const BUFFER_AT_REST_S = 6;
// Then as much as bridges a gap, but not what someone who leaves early would never see.
const BUFFER_S = 60;
const BACK_BUFFER_S = 60;
// A decoder that fails again within so long is beyond recovery.
const RECOVERY_MS = 15_000;
// hls.js leaves out what it can't parse, to the last segment, and then waits without a word.
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
const CAPTIONS = "track[kind=subtitles], track[kind=captions]";

export const isSupported = () => Hls.isSupported();

export class HlsStream extends EventTarget {
  /** @type {Hls | null} */
  #hls = null;
  /** @type {Hls | null} a second one, which reads a grown playlist */
  #successor = null;
  #backoff = new Backoff();
  /** What is done after a pause, or as soon as there is a network. @type {(() => void) | null} */
  #retry = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #pause;
  #recovered_ms = Number.NEGATIVE_INFINITY;
  /** Segments that made no sense since the last one that did. */
  #unreadable = 0;
  /** Whether a part of what is buffered was fetched by another, and is unknown to this one. */
  #isSuccessor = false;
  /** The name of the quality someone chose, for this video or an earlier one, or 0 for any. */
  #wanted = settings().quality ?? 0;

  /**
   * @param {HTMLVideoElement} video @param {string} source
   * @param {import("./track-lists.js").TrackLists} lists @param {AbortSignal} signal
   */
  constructor(video, source, { renditions, audioTracks }, signal) {
    super();
    this.video = video;
    this.source = source;
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

  /** Of the quality that is shown, or is to be. @returns {number | undefined} */
  get framesPerSecond() {
    const { levels = [], currentLevel = 0 } = this.#hls ?? {};
    return (levels[currentLevel] ?? levels[0])?.frameRate || undefined;
  }

  /** @param {number | null} at_s where to start */
  open(at_s) {
    this.close();
    this.#begin(at_s ?? -1);
  }

  /** @param {number} startPosition in seconds, or -1 */
  #begin(startPosition) {
    const hls = this.#make({ startPosition });
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
   * The playlist has grown. hls.js reads a master playlist once; a second one reads it again, and
   * takes over the video with all that is buffered, so that whoever is watching notices nothing.
   * @returns {boolean} whether it will be done; if not the stream has to be opened anew
   */
  adoptQualities() {
    const old = this.#hls;
    if (!old?.levels.length || this.#retry) return false;
    this.#successor?.destroy();
    const next = this.#make({
      autoStartLoad: false,
      abrEwmaDefaultEstimate: old.bandwidthEstimate,
      audioPreference: preference(old.audioTracks[old.audioTrack]),
      subtitlePreference: preference(old.subtitleTracks[old.subtitleTrack]),
    });
    this.#successor = next;
    next.once(Events.MANIFEST_PARSED, () => this.#succeed(old, next));
    // Another address, for caches may hold the playlist as it was.
    const address = new URL(this.source, location.href);
    address.searchParams.set("levels", String(old.levels.length + 1));
    next.loadSource(address.href);
    return true;
  }

  /** @param {Hls} old @param {Hls} next */
  #succeed(old, next) {
    if (this.#successor !== next || this.#hls !== old) return;
    this.#successor = null;
    if (next.levels.length <= old.levels.length) return next.destroy();
    const height = old.levels[old.currentLevel]?.height;
    const transfer = old.transferMedia();
    old.destroy();
    // What is handed over includes the old one's captions, and the new one makes its own.
    for (const track of this.video.querySelectorAll(CAPTIONS)) track.remove();
    this.#hls = next;
    this.#isSuccessor = true;
    next.startLevel = next.levels.findIndex((level) => level.height === height);
    next.attachMedia(transfer ?? this.video);
    next.startLoad(this.video.currentTime);
    this.#listQualities(next);
  }

  /** @param {Partial<import("hls.js").HlsConfig>} options @returns {Hls} */
  #make(options) {
    const { captions } = settings();
    const hls = new Hls({
      // The content security policy allows no worker made from a blob.
      enableWorker: false,
      capLevelToPlayerSize: true,
      ...buffering(this.video.paused ? BUFFER_AT_REST_S : BUFFER_S),
      backBufferLength: BACK_BUFFER_S,
      subtitlePreference: captions ? { lang: captions } : undefined,
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
   * A device that plays for the browser (AirPlay) can't take the segments that arrive here; it asks
   * for the stream itself. Browsers look for its address where a managed media source stands among
   * <source> elements.
   */
  #offerAlternative() {
    if (!this.playsElsewhere || !this.video.querySelector("source")) return;
    const source = document.createElement("source");
    source.type = "application/vnd.apple.mpegurl";
    source.src = this.source;
    this.video.append(source);
    // hls.js disables it where there's no alternative.
    this.video.disableRemotePlayback = false;
  }

  /** @param {Hls} hls @param {import("hls.js").Fragment | import("hls.js").Part} frag */
  #buffered(hls, { elementaryStreams: { video, audio, audiovideo } }) {
    // Told of segments that nothing was found in, too.
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
    // What is shown plays on to the end of its segment, if there's a way to tell where that is.
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
    // Of a successor the one that plays goes on; the new qualities come with the next visit.
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
      const found = await lookFor(this.source, this.signal);
      if (hls !== this.#hls) return;
      if (found === "gone") return this.#fail("gone");
    }
    const hasBegun = hls.levels.length > 0;
    // Signed addresses run out: a playlist fetched anew has fresh ones.
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
    const at_s = hls.levels.length ? currentTime : hls.config.startPosition;
    hls.destroy();
    this.#begin(at_s);
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

/** @param {number} length_s how much to fetch ahead of what is shown */
function buffering(length_s) {
  return { maxBufferLength: length_s, maxMaxBufferLength: length_s };
}

/** @param {{ lang?: string, name: string } | undefined} track */
function preference(track) {
  return track && { lang: track.lang, name: track.name };
}
