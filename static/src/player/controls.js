/**
 * Defines the elements of media-chrome that the player's template uses, and no others. The lists
 * of qualities and audio tracks come first: media-chrome looks for them once, when it finds the
 * video.
 */
import "./track-lists.js";
import "./times.js";
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
