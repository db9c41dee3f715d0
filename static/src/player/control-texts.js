/** Texts of media-chrome's elements in the page's language. Imported before these elements. */
import MediaChromeMenu from "media-chrome/menu/media-chrome-menu";
import { addTranslation, setLanguage } from "media-chrome/utils/i18n";
import { formatNumber } from "../format.js";
import { gettext, language, pgettext } from "../messages.js";

// Keys that begin with a capital letter are those of tooltips, the others of names for screen readers.
addTranslation(language, {
  "start airplay": gettext("Start airplay"),
  "stop airplay": gettext("Stop airplay"),
  "Enable captions": gettext("Enable captions"),
  "Disable captions": gettext("Disable captions"),
  // Translators: name of the switch of the captions in the player.
  "closed captions": gettext("closed captions"),
  "Start casting": gettext("Start casting"),
  "Stop casting": gettext("Stop casting"),
  "start casting": gettext("Start casting"),
  "stop casting": gettext("Stop casting"),
  "Enter fullscreen mode": gettext("Enter fullscreen mode"),
  "Exit fullscreen mode": gettext("Exit fullscreen mode"),
  "enter fullscreen mode": gettext("Enter fullscreen mode"),
  "exit fullscreen mode": gettext("Exit fullscreen mode"),
  "Enter picture in picture mode": gettext("Enter picture in picture mode"),
  "Exit picture in picture mode": gettext("Exit picture in picture mode"),
  "enter picture in picture mode": gettext("Enter picture in picture mode"),
  "exit picture in picture mode": gettext("Exit picture in picture mode"),
  Mute: pgettext("button", "Mute"),
  Unmute: pgettext("button", "Unmute"),
  mute: pgettext("button", "Mute"),
  unmute: pgettext("button", "Unmute"),
  Play: pgettext("button", "Play"),
  Pause: pgettext("button", "Pause"),
  play: pgettext("button", "Play"),
  pause: pgettext("button", "Pause"),
  "seek back {seekOffset} seconds": gettext("seek back %(seconds)s seconds", {
    seconds: "{seekOffset}",
  }),
  "seek forward {seekOffset} seconds": gettext("seek forward %(seconds)s seconds", {
    seconds: "{seekOffset}",
  }),
  // Translators: name of the slider of the position in the video.
  seek: pgettext("slider", "seek"),
  // Translators: name of the slider of the volume.
  volume: pgettext("slider", "volume"),
  // Translators: button and menu of the player.
  Settings: gettext("Settings"),
  // Translators: button of the player.
  settings: gettext("Settings"),
  // Translators: quality that the player chooses by itself.
  Auto: pgettext("quality", "Auto"),
  // Translators: choice of no captions.
  Off: pgettext("captions", "Off"),
  "video player": gettext("video player"),
  "audio player": gettext("audio player"),
  "playback time": gettext("playback time"),
  "video not loaded, unknown time.": gettext("video not loaded, unknown time."),
  // Translators: position in a video and its length, both in words.
  "{currentTime} of {totalTime}": gettext("%(position)s of %(length)s", {
    position: "{currentTime}",
    length: "{totalTime}",
  }),
  // Translators: the rest of a video in words, such as "2 minutes, 5 seconds".
  "{time} remaining": gettext("%(time)s remaining", { time: "{time}" }),
  "chapter: {chapterName}": gettext("chapter: %(title)s", { title: "{chapterName}" }),
  // Translators: after the number 1.
  hour: pgettext("after a number", "hour"),
  // Translators: after any number except 1.
  hours: pgettext("after a number", "hours"),
  // Translators: after the number 1.
  minute: pgettext("after a number", "minute"),
  // Translators: after any number except 1.
  minutes: pgettext("after a number", "minutes"),
  // Translators: after the number 1.
  second: pgettext("after a number", "second"),
  // Translators: after any number except 1.
  seconds: pgettext("after a number", "seconds"),
});
setLanguage(language);

// The menu of speeds alone gives a number. Its texts have a decimal point in all languages.
MediaChromeMenu.formatMenuItemText = (text, speed) =>
  typeof speed === "number" ? `${formatNumber(speed)}x` : text;
