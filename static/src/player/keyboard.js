/**
 * The keys of the big video sites. Letters, digits and the space bar work on the whole page while
 * nothing on it has the focus, or a time in the description, from which it plays; keys that scroll
 * work only inside the player. What has its own use for a key keeps it: fields, buttons and links,
 * open menus, the volume slider. Where letters are switched off, no key that writes anything does
 * anything, and none works outside the player (WCAG 2.1.4).
 */

import { leapWords } from "./sign.js";

const STEP_S = 5;
const LEAP_S = 10;
const VOLUME_STEP = 0.05;
const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2];
// Where the stream doesn't say.
const FRAMES_PER_S = 30;
const SCROLLING = new Set(["ArrowUp", "ArrowDown", "Home", "End"]);
const FIELDS = "input:not([type=range]), textarea, select, [contenteditable], [role=textbox]";

/**
 * What the keys do that media-chrome or the player must be asked for.
 * @typedef {object} Actions
 * @property {() => void} toggleFullscreen
 * @property {() => void} toggleCaptions
 * @property {() => void} showKeys
 * @property {() => boolean} hasLetterKeys
 * @property {() => number | undefined} framesPerSecond
 * @property {import("./sign.js").ShowSign} showSign
 */

/**
 * Answers what is shown on the picture of what it did, if anything is.
 * @typedef {(video: HTMLVideoElement, actions: Actions) => string | void} Command
 */

/** @type {Record<string, Command>} */
const COMMANDS = {
  " ": togglePlay,
  k: togglePlay,
  j: (video) => leap(video, -LEAP_S),
  l: (video) => leap(video, LEAP_S),
  ArrowLeft: (video) => leap(video, -STEP_S),
  ArrowRight: (video) => leap(video, STEP_S),
  ",": (video, { framesPerSecond }) => stepFrame(video, -1, framesPerSecond()),
  ".": (video, { framesPerSecond }) => stepFrame(video, 1, framesPerSecond()),
  ArrowUp: (video) => changeVolume(video, VOLUME_STEP),
  ArrowDown: (video) => changeVolume(video, -VOLUME_STEP),
  Home: (video) => seek(video, 0),
  End: (video) => seek(video, video.duration),
  m: toggleMute,
  f: (_video, { toggleFullscreen }) => toggleFullscreen(),
  c: (_video, { toggleCaptions }) => toggleCaptions(),
  "?": (_video, { showKeys }) => showKeys(),
  "<": (video) => changeSpeed(video, -1),
  ">": (video) => changeSpeed(video, 1),
};

/**
 * @param {HTMLElement} controller the player's outermost element
 * @param {HTMLVideoElement} video
 * @param {Actions} actions
 * @param {AbortSignal} signal
 */
export function listenToKeys(controller, video, actions, signal) {
  document.addEventListener(
    "keydown",
    (event) => {
      const command = commandFor(event, controller, actions.hasLetterKeys());
      if (!command) return;
      event.preventDefault();
      // A slider in the player must not act on it, too.
      event.stopPropagation();
      const words = command(video, actions);
      if (words) actions.showSign(words);
    },
    { capture: true, signal },
  );
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLElement} controller
 * @param {boolean} hasLetterKeys
 * @returns {Command | null}
 */
function commandFor(event, controller, hasLetterKeys) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return null;
  // A dialog's own keys are all that there is while it is open.
  if (document.querySelector("dialog[open]")) return null;
  const path = event.composedPath().filter((node) => node instanceof Element);
  const isInside = path.includes(controller);
  const isNowhere = path[0]?.matches("body, #main, [data-seek]");
  const isForAll = hasLetterKeys && isNowhere && !SCROLLING.has(event.key);
  if (!isInside && !isForAll) return null;
  if (!hasLetterKeys && event.key.length === 1 && event.key !== " ") return null;
  if (path.some((element) => hasOwnUse(element, event.key))) return null;
  if (/^[0-9]$/.test(event.key)) return (video) => seek(video, (video.duration * +event.key) / 10);
  // With the shift key held or capitals locked a letter is the same key.
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return COMMANDS[key] ?? null;
}

/**
 * @param {Element} element
 * @param {string} key
 */
function hasOwnUse(element, key) {
  if (element.matches(FIELDS) || element.matches("[role=menu]")) return true;
  if (element.localName === "media-volume-range") return key.startsWith("Arrow");
  return key === " " && element.matches("a:not([data-seek]), button, summary, [role=button]");
}

/** @param {HTMLVideoElement} video */
function togglePlay(video) {
  if (video.paused) video.play().catch(() => {});
  else video.pause();
}

/**
 * @param {HTMLVideoElement} video
 * @param {number} to_s
 */
function seek(video, to_s) {
  if (!Number.isFinite(video.duration)) return;
  video.currentTime = Math.min(Math.max(to_s, 0), video.duration);
}

/**
 * @param {HTMLVideoElement} video
 * @param {number} by_s
 */
function leap(video, by_s) {
  seek(video, video.currentTime + by_s);
  return leapWords(by_s);
}

/**
 * @param {HTMLVideoElement} video
 * @param {-1 | 1} direction
 * @param {number} [framesPerSecond]
 */
function stepFrame(video, direction, framesPerSecond = FRAMES_PER_S) {
  if (!video.paused) return;
  const frame = Math.floor(video.currentTime * framesPerSecond);
  // To the middle of the frame: rounding would miss its beginning.
  seek(video, (frame + direction + 0.5) / framesPerSecond);
}

/** @param {HTMLVideoElement} video */
function toggleMute(video) {
  video.muted = !video.muted;
  return volumeWords(video);
}

/**
 * @param {HTMLVideoElement} video
 * @param {number} by
 */
function changeVolume(video, by) {
  video.muted = false;
  // In hundredths: sums of fractions would never quite reach the ends.
  video.volume = Math.min(Math.max(Math.round((video.volume + by) * 100) / 100, 0), 1);
  return volumeWords(video);
}

/** @param {HTMLVideoElement} video */
function volumeWords({ muted, volume }) {
  return muted ? "Muted" : `Volume ${Math.round(volume * 100)}%`;
}

/**
 * @param {HTMLVideoElement} video
 * @param {-1 | 1} direction
 */
function changeSpeed(video, direction) {
  const now = video.playbackRate;
  const next =
    direction > 0
      ? SPEEDS.find((speed) => speed > now)
      : [...SPEEDS].reverse().find((speed) => speed < now);
  if (next !== undefined) video.playbackRate = next;
  return `${video.playbackRate}×`;
}
