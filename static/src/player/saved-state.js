/** Settings of the player, and the position in each video, saved in this browser. */

import { readStored, writeStored } from "../browser-storage.js";
import { parseStartTime_s } from "../format.js";
import { isCaptions } from "./captions.js";

const SETTINGS_KEY = "portal.player";
const POSITIONS_KEY = "portal.positions";
// Number of videos whose positions are kept, the most recently watched ones.
const POSITIONS_LIMIT = 100;
// Positions before this time are not saved.
const SHORTEST_WATCHED_S = 5;
// Positions in the ending are not saved, either. It is this share of the video, at most `ENDING_S`.
const ENDING_SHARE = 0.05;
const ENDING_S = 20;
const SAVE_EVERY_S = 5;
// A start time past the end is replaced by one this long before the end.
const LAST_MOMENT_S = 1;
const CAPTION_REQUESTS = [
  "mediashowsubtitlesrequest",
  "mediadisablesubtitlesrequest",
  "mediatogglesubtitlesrequest",
];

/**
 * `captions`: their language, empty for off; `quality`: 480 for 480p, 0 for automatic;
 * `hasLetterKeys`: whether letters, digits and punctuation control the player.
 * @typedef {{ volume?: number, isMuted?: boolean, speed?: number, captions?: string,
 *   hasLetterKeys?: boolean, quality?: number }} Settings
 */

/** Return the saved settings. @returns {Settings} */
export function settings() {
  return readStored(SETTINGS_KEY) ?? {};
}

/** Save some settings, and keep the others. @param {Settings} changes */
export function saveSettings(changes) {
  writeStored(SETTINGS_KEY, { ...settings(), ...changes });
}

/**
 * Return the start time in the page's address, else the saved position.
 * @param {HTMLVideoElement} video @returns {number | null} null if there is neither
 */
export function startPosition_s(video) {
  const requested_s = parseStartTime_s(new URLSearchParams(location.search).get("t"));
  const [saved_s = null] = readStored(POSITIONS_KEY)?.[video.dataset.video ?? ""] ?? [];
  const duration_s = Number(video.dataset.duration ?? Number.POSITIVE_INFINITY);
  const at_s = requested_s ?? saved_s;
  return at_s === null ? null : Math.max(Math.min(at_s, duration_s - LAST_MOMENT_S), 0);
}

/**
 * Restore volume and speed, and save their changes.
 * @param {HTMLVideoElement} video @param {AbortSignal} signal
 */
export function restoreSettings(video, signal) {
  const { volume, isMuted, speed } = settings();
  // An embedded player may be muted by its address; that is not the viewer's choice.
  const isMutedByAddress = video.muted;
  if (volume !== undefined) video.volume = volume;
  if (isMuted && !isMutedByAddress) video.muted = true;
  if (speed !== undefined) {
    // A new source resets the rate to the default.
    video.defaultPlaybackRate = speed;
    video.playbackRate = speed;
  }
  const saveVolume = () => {
    if (isMutedByAddress && video.muted) saveSettings({ volume: video.volume });
    else saveSettings({ volume: video.volume, isMuted: video.muted });
  };
  video.addEventListener("volumechange", saveVolume, { signal });
  const saveSpeed = () => {
    video.defaultPlaybackRate = video.playbackRate;
    saveSettings({ speed: video.playbackRate });
  };
  video.addEventListener("ratechange", saveSpeed, { signal });
}

/**
 * Save the position every few seconds, on pause, and when the page closes.
 * @param {HTMLVideoElement} video @param {AbortSignal} signal
 */
export function savePositionDuringPlayback(video, signal) {
  const videoId = video.dataset.video;
  if (!videoId) return;
  let saved_s = 0;
  const save = () => {
    if (!video.duration || video.played.length === 0) return;
    saved_s = video.currentTime;
    savePosition(videoId, video.currentTime, video.duration);
  };
  const saveRegularly = () => {
    if (Math.abs(video.currentTime - saved_s) >= SAVE_EVERY_S) save();
  };
  video.addEventListener("timeupdate", saveRegularly, { signal });
  for (const name of ["pause", "ended"]) video.addEventListener(name, save, { signal });
  window.addEventListener("pagehide", save, { signal });
}

/** @param {string} videoId @param {number} at_s @param {number} duration_s */
function savePosition(videoId, at_s, duration_s) {
  const ending_s = Math.min(duration_s * ENDING_SHARE, ENDING_S);
  const { [videoId]: _old, ...others } = readStored(POSITIONS_KEY) ?? {};
  /** @type {[string, [at_s: number, saved_ms: number]][]} */
  const entries = Object.entries(others);
  const isSaved = at_s >= SHORTEST_WATCHED_S && at_s < duration_s - ending_s;
  if (isSaved) entries.push([videoId, [Math.floor(at_s), Date.now()]]);
  entries.sort(([, a], [, b]) => b[1] - a[1]);
  writeStored(POSITIONS_KEY, Object.fromEntries(entries.slice(0, POSITIONS_LIMIT)));
}

/**
 * Save the language of the chosen captions for the next video.
 * @param {HTMLElement} controller @param {HTMLVideoElement} video @param {AbortSignal} signal
 */
export function saveCaptionChoices(controller, video, signal) {
  const saveLanguage = () => {
    const tracks = [...video.textTracks].filter(isCaptions);
    const shown = tracks.find(({ mode }) => mode === "showing");
    saveSettings({ captions: shown?.language ?? "" });
  };
  for (const name of CAPTION_REQUESTS) {
    // The tracks change after this listener.
    controller.addEventListener(name, () => setTimeout(saveLanguage), { signal });
  }
}
