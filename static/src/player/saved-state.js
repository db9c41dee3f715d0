/**
 * Settings of the player, and the position in each video, saved in this browser. Positions of
 * signed-in people are also sent to the portal, for their other devices (`portal/videos/watching.py`
 * has the same rules).
 */

import { readStored, writeStored } from "../browser-storage.js";
import { parseStartTime_s } from "../format.js";
import { FORM, send } from "../requests.js";
import { shownLanguage } from "./captions.js";
import { clipOf, isInside } from "./clip.js";

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
// A position is dropped once the length of the video has changed by more: it was cut, or replaced.
const LENGTH_TOLERANCE_S = 2;
// Interval of positions that are sent to the portal during playback.
const SEND_EVERY_MS = 15_000;
const SEND_TIMEOUT_MS = 10_000;
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
 * Return the start time in the page's address, else the saved position. A clip starts at its
 * beginning, or at a start time inside it.
 * @param {HTMLVideoElement} video @returns {number | null} null if there is neither
 */
export function startPosition_s(video) {
  const requested_s = parseStartTime_s(new URLSearchParams(location.search).get("t"));
  const clip = clipOf(video);
  if (clip) return isInside(clip, requested_s) ? requested_s : clip.start_s;
  const duration_s = Number(video.dataset.duration ?? Number.POSITIVE_INFINITY);
  const at_s = requested_s ?? savedPosition_s(video);
  return at_s === null ? null : Math.max(Math.min(at_s, duration_s - LAST_MOMENT_S), 0);
}

/**
 * Return the newer of the positions that this browser and the portal have saved. The portal tells
 * its position's age, because clocks differ.
 * @param {HTMLVideoElement} video @returns {number | null}
 */
function savedPosition_s(video) {
  const { video: videoId = "", position, positionAge, duration } = video.dataset;
  const [at_s = null, saved_ms = 0, length_s = duration] =
    readStored(POSITIONS_KEY)?.[videoId] ?? [];
  const isOfOtherFilm = Math.abs(Number(length_s) - Number(duration)) > LENGTH_TOLERANCE_S;
  const [own_s, own_ms] = isOfOtherFilm ? [null, 0] : [at_s, saved_ms];
  if (position === undefined || own_ms > Date.now() - Number(positionAge) * 1000) return own_s;
  // A finished video has the position 0.
  return Number(position) || null;
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
    const { volume, muted, dataset } = video;
    // The site of a frame set this sound (`embedding.js`).
    if (dataset.siteSound === `${volume} ${muted}`) return;
    if (isMutedByAddress && muted) saveSettings({ volume });
    else saveSettings({ volume, isMuted: muted });
  };
  video.addEventListener("volumechange", saveVolume, { signal });
  const saveSpeed = () => {
    video.defaultPlaybackRate = video.playbackRate;
    saveSettings({ speed: video.playbackRate });
  };
  video.addEventListener("ratechange", saveSpeed, { signal });
}

/**
 * Save the position every few seconds, on pause, and when the page is hidden or closed.
 * @param {HTMLVideoElement} video @param {AbortSignal} signal
 */
export function savePositionDuringPlayback(video, signal) {
  const { video: videoId, positionUrl } = video.dataset;
  if (!videoId) return;
  /** @type {number | null} */
  let saved_s = null;
  /** @type {number | null} */
  let sent_s = null;
  let sentAt_ms = performance.now();
  // A page at rest never saves twice: another page or device may have a newer position by then.
  const save = () => {
    const at_s = Math.floor(video.currentTime);
    if (!video.duration || video.played.length === 0 || at_s === saved_s) return;
    saved_s = at_s;
    // The stream of a video that is being processed is shorter than the video.
    savePosition(videoId, at_s, Number(video.dataset.duration) || video.duration);
  };
  const send = () => {
    const at_s = Math.floor(video.currentTime);
    if (!positionUrl || video.played.length === 0 || at_s === sent_s) return;
    sent_s = at_s;
    sentAt_ms = performance.now();
    sendPosition(positionUrl, at_s);
  };
  const saveAndSend = () => {
    save();
    send();
  };
  const saveRegularly = () => {
    if (Math.abs(video.currentTime - (saved_s ?? 0)) >= SAVE_EVERY_S) save();
    if (performance.now() - sentAt_ms >= SEND_EVERY_MS) send();
  };
  video.addEventListener("timeupdate", saveRegularly, { signal });
  for (const name of ["pause", "ended"]) video.addEventListener(name, saveAndSend, { signal });
  const saveHidden = () => document.hidden && saveAndSend();
  document.addEventListener("visibilitychange", saveHidden, { signal });
  window.addEventListener("pagehide", saveAndSend, { signal });
}

/**
 * Send a position to the portal. The request may outlive the page. It isn't repeated, because a
 * newer position soon follows.
 * @param {string} url @param {number} at_s
 */
function sendPosition(url, at_s) {
  const body = new URLSearchParams({ position: String(at_s) });
  const options = { body, contentType: FORM, keepalive: true, timeout_ms: SEND_TIMEOUT_MS };
  send("POST", url, () => null, options).catch(() => {});
}

/** @param {string} videoId @param {number} at_s @param {number} duration_s */
function savePosition(videoId, at_s, duration_s) {
  const ending_s = Math.min(duration_s * ENDING_SHARE, ENDING_S);
  const { [videoId]: _old, ...others } = readStored(POSITIONS_KEY) ?? {};
  /** @type {[string, [at_s: number, saved_ms: number, length_s: number]][]} */
  const entries = Object.entries(others);
  const isSaved = at_s >= SHORTEST_WATCHED_S && at_s < duration_s - ending_s;
  if (isSaved) entries.push([videoId, [Math.floor(at_s), Date.now(), duration_s]]);
  entries.sort(([, a], [, b]) => b[1] - a[1]);
  writeStored(POSITIONS_KEY, Object.fromEntries(entries.slice(0, POSITIONS_LIMIT)));
}

/** Delete the positions in this browser. */
export function clearPositions() {
  writeStored(POSITIONS_KEY, undefined);
}

/**
 * Save the language of the chosen captions for the next video.
 * @param {HTMLElement} controller @param {HTMLVideoElement} video @param {AbortSignal} signal
 */
export function saveCaptionChoices(controller, video, signal) {
  const saveLanguage = () => saveSettings({ captions: shownLanguage(video) });
  for (const name of CAPTION_REQUESTS) {
    // The tracks change after this listener.
    controller.addEventListener(name, () => setTimeout(saveLanguage), { signal });
  }
}
