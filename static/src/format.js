/**
 * Formats numbers, sizes and times in the page's language, parses times, and folds text for
 * comparison.
 */

import { gettext, language } from "./messages.js";

/** Locale of dates: the portal's English is that of Britain. */
const DATE_LOCALE = language === "en" ? "en-GB" : language;
const numberFormat = new Intl.NumberFormat(language);
const percentFormat = new Intl.NumberFormat(language, { style: "percent" });
const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];

/** Return a number as texts show it. @param {number} value @returns {string} such as "1,234.5" */
export function formatNumber(value) {
  return numberFormat.format(value);
}

/**
 * Return a share in whole percent, rounded half up.
 * @param {number} share from 0 to 1 @returns {string} such as "45%"
 */
export function formatPercent(share) {
  return percentFormat.format(share);
}

/**
 * Return a size in powers of 1000, as file managers and networks count.
 * @param {number} size_bytes @returns {string} such as "12.4 MB"
 */
export function formatSize(size_bytes) {
  let value = size_bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit > 0 && value < 99.95 ? 1 : 0;
  const format = new Intl.NumberFormat(language, {
    style: "unit",
    unit: UNITS[unit],
    unitDisplay: unit > 0 ? "short" : "long",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return format.format(value).replace(/[ \u202f]/, "\u00a0");
}

/**
 * Return a duration as every page shows it: in whole seconds, rounded half up, at least 1.
 * @param {number} duration_s
 */
export function wholeSeconds(duration_s) {
  return Math.max(1, Math.round(duration_s));
}

/**
 * Return a time as a clock shows it.
 * @param {number} seconds a whole number @returns {string} such as "2:14" or "1:02:14"
 */
export function formatClock(seconds) {
  const [h, min, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const end = String(s).padStart(2, "0");
  return h ? `${h}:${String(min).padStart(2, "0")}:${end}` : `${min}:${end}`;
}

const UNIT_TIME = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?$/;
const CLOCK_TIME = /^(?:(\d+):)?(\d{1,3}):([0-5]\d(?:\.\d+)?)$/;

/**
 * Parse a start time: 90, 90s, 1m30s, 1:30 or 1:02:03.
 * @param {string | null} text @returns {number | null} seconds; null for another text
 */
export function parseStartTime_s(text) {
  const input = text?.trim().toLowerCase().replace(",", ".");
  const match = input && (UNIT_TIME.exec(input) ?? CLOCK_TIME.exec(input));
  if (!match) return null;
  const [hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => Number(part ?? 0));
  return hours * 3600 + minutes * 60 + seconds;
}

/**
 * Return a time to a millisecond.
 * @param {number} time_s @returns {string} such as "1:02.500"
 */
export function formatExactTime(time_s) {
  const time_ms = Math.round(time_s * 1000);
  return `${formatClock(Math.floor(time_ms / 1000))}.${String(time_ms % 1000).padStart(3, "0")}`;
}

/**
 * Return a time to a tenth of a second, without zeros at its end.
 * @param {number} time_s @returns {string} such as "1:02.5" or "1:02"
 */
export function formatBriefTime(time_s) {
  return formatExactTime(Math.round(time_s * 10) / 10).replace(/\.?0+$/, "");
}

/**
 * Return the time left, rounded so that it does not flicker.
 * @param {number} seconds @returns {string} such as "about 3 min left"
 */
export function formatTimeLeft(seconds) {
  if (seconds < 5) return gettext("a few seconds left");
  if (seconds < 55) {
    return gettext("about %(seconds)s s left", { seconds: Math.ceil(seconds / 5) * 5 });
  }
  if (seconds < 3300) {
    const minutes = Math.max(1, Math.round(seconds / 60));
    return gettext("about %(minutes)s min left", { minutes });
  }
  const wholeHours = Math.floor(seconds / 3600 + 1 / 12);
  const minutes = Math.max(0, Math.round((seconds - wholeHours * 3600) / 300) * 5);
  const hours = formatNumber(wholeHours);
  return minutes
    ? gettext("about %(hours)s h %(minutes)s min left", { hours, minutes })
    : gettext("about %(hours)s h left", { hours });
}

/**
 * Return the day and the time of a moment, for the sentences about it.
 * @param {number} moment in milliseconds since the epoch
 * @returns {{ isToday: boolean, date: string, time: string }} such as "2 January" and "14:05"
 */
export function formatWhen(moment) {
  const when = new Date(moment);
  return {
    isToday: when.toDateString() === new Date().toDateString(),
    date: when.toLocaleDateString(DATE_LOCALE, { day: "numeric", month: "long" }),
    time: when.toLocaleTimeString(DATE_LOCALE, { hour: "2-digit", minute: "2-digit" }),
  };
}

/**
 * Units with their lengths in seconds, longest first.
 * @type {[Intl.RelativeTimeFormatUnit, number][]}
 */
const AGE_UNITS = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

/**
 * Return the time since a moment.
 * @param {Date} moment @param {Date} now @returns {string} such as "3 days ago"
 */
export function formatAgo(moment, now) {
  const age_s = Math.max((now.getTime() - moment.getTime()) / 1000, 0);
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const [unit, length_s] = AGE_UNITS.find(([, seconds]) => age_s >= seconds) ?? [];
  // Translators: less than a minute ago.
  if (!unit || !length_s) return gettext("just now");
  return format.format(-Math.floor(age_s / length_s), unit);
}

/** Return a text without case and accents, for searches. @param {string} text */
export function foldText(text) {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}
