/**
 * Keyboard shortcuts and taps, and the sign on the picture that shows their effect.
 *
 * The shortcuts are those of the big video sites. Letters, digits and the space bar work on the
 * whole page while no element has the focus except a time in the description, or a button of the
 * editor of cuts; keys that scroll work only inside the player. Fields, buttons, links, open menus and the volume slider keep their own
 * keys. With character keys switched off, no character is a shortcut except the space bar, and no
 * key works outside the player (WCAG 2.1.4).
 */

import { formatNumber, formatPercent } from "../format.js";
import { gettext } from "../messages.js";
import { playedPart } from "./clip.js";

const SIGN_MS = 800;
const STEP_S = 5;
const LONG_STEP_S = 10;
const VOLUME_STEP = 0.05;
const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2];
// Frame rate if the stream doesn't have one.
const FRAMES_PER_S = 30;
const SCROLLING = new Set(["ArrowUp", "ArrowDown", "Home", "End"]);
const FIELDS = "input:not([type=range]), textarea, select, [contenteditable], [role=textbox]";
// Longest time between the taps of a double tap.
const TAP_INTERVAL_MS = 350;
/**
 * Command of a key; `press` takes the name of a media-chrome button. A command returns the text of
 * its sign, if it has one.
 * @typedef {(text: string) => void} ShowSign
 * @typedef {{ press: (button: string) => void, showKeys: () => void,
 *   hasLetterKeys: () => boolean, framesPerSecond: () => number | undefined,
 *   showSign: ShowSign }} Actions
 * @typedef {(video: HTMLVideoElement, actions: Actions) => string | void} Command
 */

/** @type {Record<string, Command>} */
const COMMANDS = {
  " ": togglePlay,
  k: togglePlay,
  j: (video) => seekBy(video, -LONG_STEP_S),
  l: (video) => seekBy(video, LONG_STEP_S),
  ArrowLeft: (video) => seekBy(video, -STEP_S),
  ArrowRight: (video) => seekBy(video, STEP_S),
  ",": (video, { framesPerSecond }) => stepFrame(video, -1, framesPerSecond()),
  ".": (video, { framesPerSecond }) => stepFrame(video, 1, framesPerSecond()),
  ArrowUp: (video) => changeVolume(video, VOLUME_STEP),
  ArrowDown: (video) => changeVolume(video, -VOLUME_STEP),
  Home: (video) => seek(video, playedPart(video).start_s),
  End: (video) => seek(video, playedPart(video).end_s),
  m: (video) => {
    video.muted = !video.muted;
    return describeVolume(video);
  },
  f: (_video, { press }) => press("media-fullscreen-button"),
  c: (_video, { press }) => press("media-captions-button"),
  "?": (_video, { showKeys }) => showKeys(),
  "<": (video) => changeSpeed(video, SPEEDS.filter((speed) => speed < video.playbackRate).at(-1)),
  ">": (video) => changeSpeed(video, SPEEDS.filter((speed) => speed > video.playbackRate)[0]),
};

/**
 * Run the commands of pressed keys.
 * @param {HTMLElement} controller the player's outermost element
 * @param {HTMLVideoElement} video @param {Actions} actions @param {AbortSignal} signal
 */
export function listenToKeys(controller, video, actions, signal) {
  /** @param {KeyboardEvent} event */
  const handleKey = (event) => {
    const command = commandFor(event, controller, actions.hasLetterKeys());
    if (!command) return;
    event.preventDefault();
    // A focused slider in the player would also handle the key.
    event.stopPropagation();
    const text = command(video, actions);
    if (text) actions.showSign(text);
  };
  document.addEventListener("keydown", handleKey, { capture: true, signal });
}

/**
 * Return the command of a key event; null for keys that are not for the player.
 * @param {KeyboardEvent} event @param {HTMLElement} controller @param {boolean} hasLetterKeys
 * @returns {Command | null}
 */
function commandFor(event, controller, hasLetterKeys) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return null;
  // Keys in an open dialog belong to the dialog.
  if (document.querySelector("dialog[open]")) return null;
  const path = event.composedPath().filter((node) => node instanceof Element);
  const isInside = path.includes(controller);
  const isNowhere = path[0]?.matches(
    "body, #main, [data-seek], [data-cuts] :not(input), [data-playhead]",
  );
  const isPageWide = hasLetterKeys && isNowhere && !SCROLLING.has(event.key);
  if (!isInside && !isPageWide) return null;
  if (!hasLetterKeys && event.key.length === 1 && event.key !== " ") return null;
  if (path.some((element) => handlesKeyItself(element, event.key))) return null;
  if (/^[0-9]$/.test(event.key)) return (video) => seekToTenth(video, Number(event.key));
  // Shortcuts also work with Shift and Caps Lock.
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return COMMANDS[key] ?? null;
}

/** Return whether an element handles a key itself. @param {Element} element @param {string} key */
function handlesKeyItself(element, key) {
  if (element.matches(FIELDS) || element.matches("[role=menu]")) return true;
  if (element.localName === "media-volume-range") return key.startsWith("Arrow");
  return key === " " && element.matches("a:not([data-seek]), button, summary, [role=button]");
}

/** @param {HTMLVideoElement} video */
function togglePlay(video) {
  if (video.paused) video.play().catch(() => {});
  else video.pause();
}

/** @param {HTMLVideoElement} video @param {number} to_s */
function seek(video, to_s) {
  if (!Number.isFinite(video.duration)) return;
  const { start_s, end_s } = playedPart(video);
  video.currentTime = Math.min(Math.max(to_s, start_s), end_s);
}

/** @param {HTMLVideoElement} video @param {number} tenth from 0 to 9 */
function seekToTenth(video, tenth) {
  const { start_s, end_s } = playedPart(video);
  seek(video, start_s + ((end_s - start_s) * tenth) / 10);
}

/**
 * Seek by a time, and return the text of the sign.
 * @param {HTMLVideoElement} video @param {number} by_s
 * @param {number} [total_s] total of repeated seeks, for the sign
 */
function seekBy(video, by_s, total_s = by_s) {
  seek(video, video.currentTime + by_s);
  const seconds = `${by_s < 0 ? "−" : "+"}${Math.abs(total_s)}`;
  // Translators: sign of a seek, such as "+10 s"; it has to begin with the number.
  return gettext("%(seconds)s s", { seconds });
}

/** @param {HTMLVideoElement} video @param {-1 | 1} direction @param {number} [framesPerSecond] */
function stepFrame(video, direction, framesPerSecond = FRAMES_PER_S) {
  if (!video.paused) return;
  const frame = Math.floor(video.currentTime * framesPerSecond);
  // Seeks to the middle of the frame, because rounding could miss its start.
  seek(video, (frame + direction + 0.5) / framesPerSecond);
}

/** @param {HTMLVideoElement} video @param {number} by */
function changeVolume(video, by) {
  video.muted = false;
  // Rounded, because sums of fractions miss 0 and 1.
  video.volume = Math.min(Math.max(Math.round((video.volume + by) * 100) / 100, 0), 1);
  return describeVolume(video);
}

/** @param {HTMLVideoElement} video */
function describeVolume({ muted, volume }) {
  // Translators: of the sound.
  if (muted) return gettext("Muted");
  return gettext("Volume %(percent)s", { percent: formatPercent(volume) });
}

/**
 * Set the speed, and return the text of the sign.
 * @param {HTMLVideoElement} video @param {number} [speed] undefined to keep the slowest or fastest
 */
function changeSpeed(video, speed = video.playbackRate) {
  video.playbackRate = speed;
  return `${formatNumber(speed)}×`;
}

/**
 * Seek 10 s back or forward on a double tap in the left or right third of the picture, and 10 s
 * more on each further tap. media-chrome shows or hides the controls on every tap: the second tap
 * undoes the first one, and media-chrome doesn't receive further taps.
 * @param {HTMLElement} controller @param {HTMLVideoElement} video
 * @param {ShowSign} showSign @param {AbortSignal} signal
 */
export function listenToTaps(controller, video, showSign, signal) {
  let last = { side: 0, at_ms: Number.NEGATIVE_INFINITY, count: 0 };
  /** @param {PointerEvent} event */
  const handleTap = (event) => {
    if (event.pointerType !== "touch" || !event.isPrimary) return;
    // Taps on the picture's buttons are not for seeking.
    if (event.target !== video && event.target !== controller) return;
    const { left, width } = controller.getBoundingClientRect();
    const side = Math.floor((3 * (event.clientX - left)) / width) - 1;
    const at_ms = event.timeStamp;
    const isNext = side === last.side && at_ms - last.at_ms < TAP_INTERVAL_MS;
    last = { side, at_ms, count: isNext ? last.count + 1 : 1 };
    const repeats = last.count - 1;
    if (side === 0 || repeats === 0) return;
    if (repeats > 1) event.stopPropagation();
    if (Number.isFinite(video.duration))
      showSign(seekBy(video, side * LONG_STEP_S, repeats * LONG_STEP_S));
  };
  // A listener of the parent runs before those of the controller. Scrolling sends "pointercancel".
  const frame = controller.parentElement ?? controller;
  frame.addEventListener("pointerup", handleTap, { capture: true, signal });
}

/**
 * Return the function that shows a text on the picture for a moment.
 * @param {HTMLElement} sign @param {AbortSignal} signal @returns {ShowSign}
 */
export function createSign(sign, signal) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let hideTimer;
  const hide = () => {
    clearTimeout(hideTimer);
    sign.hidden = true;
  };
  signal.addEventListener("abort", hide);
  return (text) => {
    hide();
    sign.textContent = text;
    // The style sheet positions the sign by its first character.
    sign.dataset.playerSign = text.slice(0, 1);
    sign.hidden = false;
    hideTimer = setTimeout(hide, SIGN_MS);
  };
}
