/**
 * Keyboard shortcuts and taps, and the sign on the picture that shows their effect.
 *
 * Shortcuts are those of the big video sites. Letters, digits and the space bar work on the whole
 * page while nothing has the focus except a time in the description; keys that scroll work only
 * inside the player. Fields, buttons, links, open menus and the volume slider keep their own keys.
 * With character keys switched off, no character is a shortcut except the space bar, and nothing
 * works outside the player (WCAG 2.1.4).
 */

const SIGN_MS = 800;
const STEP_S = 5;
const LEAP_S = 10;
const VOLUME_STEP = 0.05;
const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2];
// Frame rate if the stream doesn't have one.
const FRAMES_PER_S = 30;
const SCROLLING = new Set(["ArrowUp", "ArrowDown", "Home", "End"]);
const FIELDS = "input:not([type=range]), textarea, select, [contenteditable], [role=textbox]";
// Taps further apart than this are separate.
const PAUSE_MS = 350;
/**
 * Commands of the keys; `press` takes the name of a media-chrome button. A command returns the text
 * of its sign, if it has one.
 * @typedef {(words: string) => void} ShowSign
 * @typedef {{ press: (button: string) => void, showKeys: () => void,
 *   hasLetterKeys: () => boolean, framesPerSecond: () => number | undefined,
 *   showSign: ShowSign }} Actions
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
  m: (video) => {
    video.muted = !video.muted;
    return volumeWords(video);
  },
  f: (_video, { press }) => press("media-fullscreen-button"),
  c: (_video, { press }) => press("media-captions-button"),
  "?": (_video, { showKeys }) => showKeys(),
  "<": (video) => changeSpeed(video, SPEEDS.filter((speed) => speed < video.playbackRate).at(-1)),
  ">": (video) => changeSpeed(video, SPEEDS.filter((speed) => speed > video.playbackRate)[0]),
};

/**
 * @param {HTMLElement} controller the player's outermost element
 * @param {HTMLVideoElement} video @param {Actions} actions @param {AbortSignal} signal
 */
export function listenToKeys(controller, video, actions, signal) {
  /** @param {KeyboardEvent} event */
  const pressed = (event) => {
    const command = commandFor(event, controller, actions.hasLetterKeys());
    if (!command) return;
    event.preventDefault();
    // A slider in the player would handle the key, too.
    event.stopPropagation();
    const words = command(video, actions);
    if (words) actions.showSign(words);
  };
  document.addEventListener("keydown", pressed, { capture: true, signal });
}

/**
 * @param {KeyboardEvent} event @param {HTMLElement} controller @param {boolean} hasLetterKeys
 * @returns {Command | null}
 */
function commandFor(event, controller, hasLetterKeys) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return null;
  // An open dialog has the keyboard to itself.
  if (document.querySelector("dialog[open]")) return null;
  const path = event.composedPath().filter((node) => node instanceof Element);
  const isInside = path.includes(controller);
  const isNowhere = path[0]?.matches("body, #main, [data-seek]");
  const isForAll = hasLetterKeys && isNowhere && !SCROLLING.has(event.key);
  if (!isInside && !isForAll) return null;
  if (!hasLetterKeys && event.key.length === 1 && event.key !== " ") return null;
  if (path.some((element) => hasOwnUse(element, event.key))) return null;
  if (/^[0-9]$/.test(event.key)) return (video) => seek(video, (video.duration * +event.key) / 10);
  // Shift and caps lock make no difference.
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return COMMANDS[key] ?? null;
}

/** @param {Element} element @param {string} key */
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

/** @param {HTMLVideoElement} video @param {number} to_s */
function seek(video, to_s) {
  if (!Number.isFinite(video.duration)) return;
  video.currentTime = Math.min(Math.max(to_s, 0), video.duration);
}

/** @param {HTMLVideoElement} video @param {number} by_s @param {number} [sum_s] of several leaps */
function leap(video, by_s, sum_s = by_s) {
  seek(video, video.currentTime + by_s);
  return `${by_s < 0 ? "−" : "+"}${Math.abs(sum_s)} s`;
}

/** @param {HTMLVideoElement} video @param {-1 | 1} direction @param {number} [framesPerSecond] */
function stepFrame(video, direction, framesPerSecond = FRAMES_PER_S) {
  if (!video.paused) return;
  const frame = Math.floor(video.currentTime * framesPerSecond);
  // The middle of the frame: rounding could miss its start.
  seek(video, (frame + direction + 0.5) / framesPerSecond);
}

/** @param {HTMLVideoElement} video @param {number} by */
function changeVolume(video, by) {
  video.muted = false;
  // Rounded, because sums of fractions never quite reach 0 or 1.
  video.volume = Math.min(Math.max(Math.round((video.volume + by) * 100) / 100, 0), 1);
  return volumeWords(video);
}

/** @param {HTMLVideoElement} video */
function volumeWords({ muted, volume }) {
  return muted ? "Muted" : `Volume ${Math.round(volume * 100)}%`;
}

/** @param {HTMLVideoElement} video @param {number} [speed] undefined past the slowest or fastest */
function changeSpeed(video, speed = video.playbackRate) {
  video.playbackRate = speed;
  return `${speed}×`;
}

/**
 * A double tap in the left or right third of the picture seeks 10 s back or forward, and each
 * further tap 10 s more. media-chrome shows or hides the controls on single taps: the second of two
 * undoes the first, and further ones are kept from it.
 * @param {HTMLElement} controller @param {HTMLVideoElement} video
 * @param {ShowSign} showSign @param {AbortSignal} signal
 */
export function listenToTaps(controller, video, showSign, signal) {
  let last = { side: 0, at_ms: Number.NEGATIVE_INFINITY, count: 0 };
  /** @param {PointerEvent} event */
  const tapped = (event) => {
    if (event.pointerType !== "touch" || !event.isPrimary) return;
    // Not the buttons on the picture.
    if (event.target !== video && event.target !== controller) return;
    const { left, width } = controller.getBoundingClientRect();
    const side = Math.floor((3 * (event.clientX - left)) / width) - 1;
    const at_ms = event.timeStamp;
    const isNext = side === last.side && at_ms - last.at_ms < PAUSE_MS;
    last = { side, at_ms, count: isNext ? last.count + 1 : 1 };
    const leaps = last.count - 1;
    if (side === 0 || leaps === 0) return;
    if (leaps > 1) event.stopPropagation();
    if (Number.isFinite(video.duration)) showSign(leap(video, side * LEAP_S, leaps * LEAP_S));
  };
  // On the parent, to act before the controller. Scrolling ends in "pointercancel" instead.
  const frame = controller.parentElement ?? controller;
  frame.addEventListener("pointerup", tapped, { capture: true, signal });
}

/** @param {HTMLElement} sign @param {AbortSignal} signal @returns {ShowSign} */
export function pictureSign(sign, signal) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let hiding;
  const hide = () => {
    clearTimeout(hiding);
    sign.hidden = true;
  };
  signal.addEventListener("abort", hide);
  return (words) => {
    hide();
    sign.textContent = words;
    // The style sheet places it by its first character.
    sign.dataset.playerSign = words.slice(0, 1);
    sign.hidden = false;
    hiding = setTimeout(hide, SIGN_MS);
  };
}
