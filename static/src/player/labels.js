/**
 * Labels of media-chrome's elements in the page's language. Load this before the elements, which
 * read some labels when they are defined.
 */
import { addTranslation, setLanguage } from "media-chrome/dist/utils/i18n.js";
import { gettext, language } from "../messages.js";

addTranslation(language, {
  Audio: gettext("Audio"),
  // Translators: quality that follows the speed of the connection.
  Auto: gettext("Auto"),
  Captions: gettext("Captions"),
  "Disable captions": gettext("Disable captions"),
  "Enable captions": gettext("Enable captions"),
  "Enter fullscreen mode": gettext("Enter fullscreen mode"),
  "Enter picture in picture mode": gettext("Enter picture in picture mode"),
  "Exit fullscreen mode": gettext("Exit fullscreen mode"),
  "Exit picture in picture mode": gettext("Exit picture in picture mode"),
  Mute: gettext("Mute"),
  // Translators: no captions.
  Off: gettext("Off"),
  Pause: gettext("Pause"),
  Play: gettext("Play"),
  "Start airplay": gettext("Start airplay"),
  "Start casting": gettext("Start casting"),
  "Stop airplay": gettext("Stop airplay"),
  "Stop casting": gettext("Stop casting"),
  Unmute: gettext("Unmute"),
  "closed captions": gettext("Captions"),
  "enter fullscreen mode": gettext("Enter fullscreen mode"),
  "enter picture in picture mode": gettext("Enter picture in picture mode"),
  "exit fullscreen mode": gettext("Exit fullscreen mode"),
  "exit picture in picture mode": gettext("Exit picture in picture mode"),
  hour: gettext("hour"),
  hours: gettext("hours"),
  minute: gettext("minute"),
  minutes: gettext("minutes"),
  mute: gettext("Mute"),
  pause: gettext("Pause"),
  play: gettext("Play"),
  "playback time": gettext("Playback time"),
  second: gettext("second"),
  seconds: gettext("seconds"),
  // Translators: the bar on which one chooses the time.
  seek: gettext("Seek"),
  "seek back {seekOffset} seconds": gettext("Seek back %(seconds)s seconds", {
    seconds: "{seekOffset}",
  }),
  "seek forward {seekOffset} seconds": gettext("Seek forward %(seconds)s seconds", {
    seconds: "{seekOffset}",
  }),
  settings: gettext("Settings"),
  "start airplay": gettext("Start airplay"),
  "start casting": gettext("Start casting"),
  "stop airplay": gettext("Stop airplay"),
  "stop casting": gettext("Stop casting"),
  unmute: gettext("Unmute"),
  "video not loaded, unknown time.": gettext("Video not loaded, unknown time."),
  "video player": gettext("Video player"),
  volume: gettext("Volume"),
  "{currentTime} of {totalTime}": gettext("%(current)s of %(total)s", {
    current: "{currentTime}",
    total: "{totalTime}",
  }),
  "{time} remaining": gettext("%(time)s remaining", { time: "{time}" }),
});
setLanguage(language);
