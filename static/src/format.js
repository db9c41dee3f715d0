/** Sizes, speeds and times as people read them. */

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];

/**
 * @param {number} size_bytes
 * @returns {string} such as "12.4 MB", as the reader's language writes it; in powers of 1000, as
 *   file managers and networks count
 */
export function formatSize(size_bytes) {
  let value = size_bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit > 0 && value < 99.95 ? 1 : 0;
  const format = new Intl.NumberFormat(undefined, {
    style: "unit",
    unit: UNITS[unit],
    unitDisplay: unit > 0 ? "short" : "long",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return format.format(value).replace(" ", "\u00a0");
}

/**
 * Return a duration as shown everywhere: rounded to the nearest second, halves upward, at least 1.
 * @param {number} duration_s
 */
export function wholeSeconds(duration_s) {
  return Math.max(1, Math.round(duration_s));
}

/** @param {number} seconds whole ones @returns {string} such as "2:14" or "1:02:14" */
export function formatClock(seconds) {
  const [h, min, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const end = String(s).padStart(2, "0");
  return h ? `${h}:${String(min).padStart(2, "0")}:${end}` : `${min}:${end}`;
}

const IN_WORDS = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?$/;
const BY_THE_CLOCK = /^(?:(\d+):)?(\d{1,3}):([0-5]\d(?:\.\d+)?)$/;

/**
 * @param {string | null} text as people write a start time: 90, 90s, 1m30s, 1:30 or 1:02:03
 * @returns {number | null} seconds
 */
export function parseStartTime_s(text) {
  const written = text?.trim().toLowerCase();
  const match = written && (IN_WORDS.exec(written) ?? BY_THE_CLOCK.exec(written));
  if (!match) return null;
  const [hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => Number(part ?? 0));
  return hours * 3600 + minutes * 60 + seconds;
}

/**
 * @param {number} seconds
 * @returns {string} such as "about 3 min left", coarse enough not to flicker
 */
export function formatTimeLeft(seconds) {
  if (seconds < 5) return "a few seconds left";
  if (seconds < 55) return `about ${Math.ceil(seconds / 5) * 5} s left`;
  if (seconds < 3300) return `about ${Math.max(1, Math.round(seconds / 60))} min left`;
  const hours = Math.floor(seconds / 3600 + 1 / 12);
  const minutes = Math.max(0, Math.round((seconds - hours * 3600) / 300) * 5);
  return minutes ? `about ${hours} h ${minutes} min left` : `about ${hours} h left`;
}

/**
 * @param {number} moment in milliseconds since the epoch @returns {string} such as "today at 14:05"
 */
export function formatWhen(moment) {
  const date = new Date(moment);
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const isToday = date.toDateString() === new Date().toDateString();
  if (isToday) return `today at ${time}`;
  return `on ${date.toLocaleDateString("en-GB", { day: "numeric", month: "long" })} at ${time}`;
}

/** @type {[Intl.RelativeTimeFormatUnit, number][]} each with its seconds, from the longest */
const AGO = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

/**
 * @param {Date} moment @param {Date} now
 * @returns {string} such as "3 days ago", as the reader's language has it
 */
export function formatAgo(moment, now) {
  const age_s = Math.max((now.getTime() - moment.getTime()) / 1000, 0);
  const format = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  const [unit, length_s] = AGO.find(([, seconds]) => age_s >= seconds) ?? ["second", Infinity];
  return format.format(-Math.floor(age_s / length_s), unit);
}
