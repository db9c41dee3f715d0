/** Elements of media-chrome that the player's template uses, and the times that they show. */
import "./control-texts.js";
import MediaTimeDisplay from "media-chrome/media-time-display";
import "media-chrome/media-controller";
import "media-chrome/media-control-bar";
import "media-chrome/media-airplay-button";
import "media-chrome/media-captions-button";
import "media-chrome/media-cast-button";
import "media-chrome/media-fullscreen-button";
import "media-chrome/media-mute-button";
import "media-chrome/media-pip-button";
import "media-chrome/media-play-button";
import "media-chrome/media-seek-backward-button";
import "media-chrome/media-seek-forward-button";
import MediaTimeRange from "media-chrome/media-time-range";
import "media-chrome/media-volume-range";
import "media-chrome/menu/media-audio-track-menu";
import "media-chrome/menu/media-captions-menu";
import "media-chrome/menu/media-playback-rate-menu";
import "media-chrome/menu/media-rendition-menu";
import "media-chrome/menu/media-settings-menu";
import "media-chrome/menu/media-settings-menu-button";
import "media-chrome/menu/media-settings-menu-item";
import { wholeSeconds } from "../format.js";
import { clipOf } from "./clip.js";

// Tolerance at the end, because browsers may stop slightly before the duration.
const END_S = 0.05;

/**
 * Return the video whose time an element shows.
 * @param {HTMLElement} display
 */
function videoOf(display) {
  return display.closest("media-controller")?.querySelector("video");
}

/** Return the clip whose time an element shows. @param {HTMLElement} display */
function clipShownBy(display) {
  const video = videoOf(display);
  return video ? clipOf(video) : null;
}

/**
 * Return a video's length as its card and page show it: the portal's figure, rounded. media-chrome
 * truncates it, and shows none before the stream is loaded. Of a clip it is the end.
 * @param {MediaTimeDisplay} display
 */
function readLength_s(display) {
  const clip = clipShownBy(display);
  if (clip) return wholeSeconds(clip.end_s);
  const duration = videoOf(display)?.dataset.duration;
  return wholeSeconds(Number(duration || (display.getAttribute("mediaduration") ?? Number.NaN)));
}

/**
 * Return the position in seconds. At the end it is the length, except in a growing preview.
 * @param {MediaTimeDisplay} display
 */
function readPosition_s(display) {
  const currentTime_s = Number(display.getAttribute("mediacurrenttime") ?? 0);
  const end_s = Number(display.getAttribute("mediaduration") ?? Number.POSITIVE_INFINITY);
  const isAtEnd = currentTime_s >= end_s - END_S && !videoOf(display)?.hasAttribute("data-grows");
  return isAtEnd
    ? readLength_s(display)
    : Math.min(Math.floor(currentTime_s), readLength_s(display));
}

/**
 * Replace the getter of a property of media-chrome's elements.
 * @template {HTMLElement} T
 * @param {T} prototype @param {string} name
 * @param {(element: T, original: number) => number} readTime
 */
function replaceGetter(prototype, name, readTime) {
  const property = Object.getOwnPropertyDescriptor(prototype, name);
  Object.defineProperty(prototype, name, {
    ...property,
    /** @this {T} */
    get() {
      return readTime(this, property?.get?.call(this));
    },
  });
}

replaceGetter(MediaTimeDisplay.prototype, "mediaDuration", readLength_s);
replaceGetter(MediaTimeDisplay.prototype, "mediaCurrentTime", readPosition_s);
// The time bar of a clip begins and ends with the clip. Its times are those of the whole video.
for (const name of ["mediaDuration", "mediaSeekableEnd"]) {
  replaceGetter(
    MediaTimeRange.prototype,
    name,
    (range, end_s) => clipShownBy(range)?.end_s ?? end_s,
  );
}
replaceGetter(
  MediaTimeRange.prototype,
  "mediaSeekableStart",
  (range, start_s) => clipShownBy(range)?.start_s ?? start_s,
);
