/**
 * Makes the player tell a video's length as its card and its page do: by the portal's figure for
 * it, rounded as everywhere. media-chrome would leave out what is short of a whole second, and
 * tells nothing before the stream is there. The position counts the seconds that have passed, and
 * at the end it is the length.
 */
import MediaTimeDisplay from "media-chrome/media-time-display";
import { wholeSeconds } from "../format.js";

// What browsers are short of the end by when they have shown everything.
const END_S = 0.05;

/** @param {MediaTimeDisplay} display */
function length_s(display) {
  const told = display.closest("media-controller")?.querySelector("video")?.dataset.duration;
  return told ? Number(told) : Number(display.getAttribute("mediaduration") ?? Number.NaN);
}

/** @param {MediaTimeDisplay} display */
function position_s(display) {
  const at_s = Number(display.getAttribute("mediacurrenttime") ?? 0);
  const whole_s = wholeSeconds(length_s(display));
  const end_s = Number(display.getAttribute("mediaduration") ?? Number.POSITIVE_INFINITY);
  return at_s >= end_s - END_S ? whole_s : Math.min(Math.floor(at_s), whole_s);
}

/**
 * @param {string} name
 * @param {(display: MediaTimeDisplay) => number} read
 */
function define(name, read) {
  const own = Object.getOwnPropertyDescriptor(MediaTimeDisplay.prototype, name);
  Object.defineProperty(MediaTimeDisplay.prototype, name, {
    ...own,
    /** @this {MediaTimeDisplay} */
    get() {
      return read(this);
    },
  });
}

define("mediaDuration", (display) => wholeSeconds(length_s(display)));
define("mediaCurrentTime", position_s);
