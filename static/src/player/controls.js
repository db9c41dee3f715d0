/** Elements of media-chrome that the player's template uses, and the times that they show. */
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
import "media-chrome/media-time-range";
import "media-chrome/media-volume-range";
import "media-chrome/menu/media-audio-track-menu";
import "media-chrome/menu/media-captions-menu";
import "media-chrome/menu/media-playback-rate-menu";
import "media-chrome/menu/media-rendition-menu";
import "media-chrome/menu/media-settings-menu";
import "media-chrome/menu/media-settings-menu-button";
import "media-chrome/menu/media-settings-menu-item";
import { wholeSeconds } from "../format.js";

// Tolerance at the end, because browsers may stop slightly before the duration.
const END_S = 0.05;

/**
 * Return the video whose time a display shows.
 * @param {MediaTimeDisplay} display
 */
function videoOf(display) {
  return display.closest("media-controller")?.querySelector("video");
}

/**
 * Return a video's length as its card and page show it: the portal's figure, rounded. media-chrome
 * truncates it, and shows none before the stream is loaded.
 * @param {MediaTimeDisplay} display
 */
function readLength_s(display) {
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

for (const [name, readTime] of Object.entries({
  mediaDuration: readLength_s,
  mediaCurrentTime: readPosition_s,
})) {
  Object.defineProperty(MediaTimeDisplay.prototype, name, {
    ...Object.getOwnPropertyDescriptor(MediaTimeDisplay.prototype, name),
    /** @this {MediaTimeDisplay} */
    get() {
      return readTime(this);
    },
  });
}
