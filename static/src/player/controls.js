/** Defines the elements of media-chrome that the player's template uses, and no others. */
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
 * Return a video's length as its card and page show it: the portal's figure, rounded. media-chrome
 * would truncate it, and shows none before the stream is loaded.
 * @param {MediaTimeDisplay} display
 */
function length_s(display) {
  const told = display.closest("media-controller")?.querySelector("video")?.dataset.duration;
  return wholeSeconds(Number(told || (display.getAttribute("mediaduration") ?? Number.NaN)));
}

/** Return the position in seconds, and at the end the length. @param {MediaTimeDisplay} display */
function position_s(display) {
  const at_s = Number(display.getAttribute("mediacurrenttime") ?? 0);
  const end_s = Number(display.getAttribute("mediaduration") ?? Number.POSITIVE_INFINITY);
  return at_s >= end_s - END_S ? length_s(display) : Math.min(Math.floor(at_s), length_s(display));
}

for (const [name, read] of Object.entries({
  mediaDuration: length_s,
  mediaCurrentTime: position_s,
})) {
  Object.defineProperty(MediaTimeDisplay.prototype, name, {
    ...Object.getOwnPropertyDescriptor(MediaTimeDisplay.prototype, name),
    /** @this {MediaTimeDisplay} */
    get() {
      return read(this);
    },
  });
}
