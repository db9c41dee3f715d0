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
  return format.format(value);
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
