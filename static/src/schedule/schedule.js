/**
 * Form for a video's schedule, in the reader's time zone. Without scripts its times are UTC. Hidden
 * fields send what was understood, in UTC.
 */

import { element } from "../dom.js";
import { startFormPanel } from "../editing/forms.js";
import { locale } from "../local.js";
import { gettext } from "../messages.js";

const format = new Intl.DateTimeFormat(locale, {
  weekday: "long",
  day: "numeric",
  month: "long",
  year: "numeric",
  hour: "numeric",
  minute: "2-digit",
  timeZoneName: "short",
});
const { timeZone } = format.resolvedOptions();

/** @param {HTMLElement} panel @param {AbortSignal} signal */
export function startSchedule(panel, signal) {
  for (const field of panel.querySelectorAll("input[type=datetime-local]")) {
    startField(panel, /** @type {HTMLInputElement} */ (field), signal);
  }
  // Afterwards, because it compares the fields with their first values.
  startFormPanel(panel, signal);
}

/**
 * Show a recorded time as a local one, and read what people type as such.
 * @param {HTMLElement} panel @param {HTMLInputElement} field @param {AbortSignal} signal
 */
function startField(panel, field, signal) {
  const selector = `[name="${field.name}.instant"]`;
  const instant = /** @type {HTMLInputElement} */ (element(panel, selector));
  const hint = element(panel, `#${field.id}-hint`);
  const isTyped = field.value !== field.defaultValue;
  /** @param {Date} moment */
  const show = (moment) => {
    instant.value = isValid(moment) ? utcText(moment) : field.value;
    hint.textContent = isValid(moment)
      ? // Translators: `time` is a day and a time, `zone` the name of a time zone.
        gettext("%(time)s (%(zone)s)", { time: format.format(moment), zone: timeZone })
      : gettext("Time zone: %(zone)s", { zone: timeZone });
  };
  const recorded = new Date(instant.value);
  if (isValid(recorded)) field.defaultValue = localText(recorded);
  // A typed time that clocks skip is the one an hour later, and of one that they repeat the first.
  const readField = () => show(new Date(field.value));
  // A recorded time is not read from the field, in which it may be either of two repeated ones.
  if (isTyped) readField();
  else show(recorded);
  instant.disabled = false;
  field.addEventListener("input", readField, { signal });
}

/** @param {Date} moment */
const isValid = (moment) => !Number.isNaN(moment.getTime());

/** Return a moment as the API takes it. @param {Date} moment */
const utcText = (moment) => `${moment.toISOString().slice(0, 16)}:00Z`;

/** Return a moment as the value of a field. @param {Date} moment */
function localText(moment) {
  const parts = [moment.getMonth() + 1, moment.getDate(), moment.getHours(), moment.getMinutes()];
  const [month, day, hour, minute] = parts.map((part) => String(part).padStart(2, "0"));
  return `${String(moment.getFullYear()).padStart(4, "0")}-${month}-${day}T${hour}:${minute}`;
}
