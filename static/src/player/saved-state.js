/** The state that a viewer left the player in: it is restored, and saved as they change it. */
import { isCaptions } from "./captions.js";
import { position_s, savePosition, saveSettings, settings } from "./local-storage.js";
import { parseStartTime_s } from "./start-time.js";

const SAVE_EVERY_S = 5;
// A start time past the end shows the last moments.
const LAST_MOMENT_S = 1;
const CAPTION_REQUESTS = [
  "mediashowsubtitlesrequest",
  "mediadisablesubtitlesrequest",
  "mediatogglesubtitlesrequest",
];

/**
 * @param {HTMLVideoElement} video
 * @returns {number | null} the time asked for in the address, else where the video was left
 */
export function startPosition_s(video) {
  const asked_s = parseStartTime_s(new URLSearchParams(location.search).get("t"));
  const duration_s = Number(video.dataset.duration ?? Number.POSITIVE_INFINITY);
  const at_s = asked_s ?? position_s(video.dataset.video ?? "");
  return at_s === null ? null : Math.max(Math.min(at_s, duration_s - LAST_MOMENT_S), 0);
}

/**
 * @param {HTMLVideoElement} video
 * @param {AbortSignal} signal
 */
export function restoreSettings(video, signal) {
  const { volume, isMuted, speed } = settings();
  // A frame that was told to start muted says nothing about its viewer.
  const isToldSo = video.muted;
  if (volume !== undefined) video.volume = volume;
  if (isMuted && !isToldSo) video.muted = true;
  if (speed !== undefined) {
    // A new source takes on the default.
    video.defaultPlaybackRate = speed;
    video.playbackRate = speed;
  }
  const rememberVolume = () => {
    if (isToldSo && video.muted) saveSettings({ volume: video.volume });
    else saveSettings({ volume: video.volume, isMuted: video.muted });
  };
  video.addEventListener("volumechange", rememberVolume, { signal });
  const rememberSpeed = () => {
    video.defaultPlaybackRate = video.playbackRate;
    saveSettings({ speed: video.playbackRate });
  };
  video.addEventListener("ratechange", rememberSpeed, { signal });
}

/**
 * @param {HTMLVideoElement} video
 * @param {AbortSignal} signal
 */
export function keepPosition(video, signal) {
  const videoId = video.dataset.video;
  if (!videoId) return;
  let saved_s = 0;
  const save = () => {
    if (!video.duration || video.played.length === 0) return;
    saved_s = video.currentTime;
    savePosition(videoId, video.currentTime, video.duration);
  };
  const saveNowAndThen = () => {
    if (Math.abs(video.currentTime - saved_s) >= SAVE_EVERY_S) save();
  };
  video.addEventListener("timeupdate", saveNowAndThen, { signal });
  for (const name of ["pause", "ended"]) video.addEventListener(name, save, { signal });
  window.addEventListener("pagehide", save, { signal });
}

/**
 * Shows captions in the language they were last chosen in, if this video has them. Remembered as
 * an empty text they are off.
 * @param {HTMLElement} controller
 * @param {HTMLVideoElement} video
 * @param {AbortSignal} signal
 */
export function keepCaptions(controller, video, signal) {
  const { textTracks } = video;
  let chosen = settings().captions;
  textTracks.addEventListener(
    "addtrack",
    ({ track }) => {
      if (chosen && track && isCaptions(track) && nameOf(track) === chosen) {
        // hls.js has its say about a new track first.
        setTimeout(() => showOnly(textTracks, track));
      }
    },
    { signal },
  );
  const rememberChoice = () => {
    const shown = [...textTracks].find((track) => isCaptions(track) && track.mode === "showing");
    chosen = shown ? nameOf(shown) : "";
    saveSettings({ captions: chosen });
  };
  for (const name of CAPTION_REQUESTS) {
    // The tracks change while the event goes up; then the choice can be read off them.
    controller.addEventListener(name, () => setTimeout(rememberChoice), { signal });
  }
}

/**
 * @param {TextTrackList} tracks
 * @param {TextTrack} wanted
 */
function showOnly(tracks, wanted) {
  for (const track of tracks) {
    if (isCaptions(track)) track.mode = track === wanted ? "showing" : "disabled";
  }
}

/**
 * A track need not say its language; what menus call it is the next best.
 * @param {TextTrack} track
 */
function nameOf({ language, label }) {
  return language || label;
}
