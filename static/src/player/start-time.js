/** Reads a start time as people write it in an address: 90, 90s, 1m30s, 1:30 or 1:02:03. */

const IN_WORDS = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?$/;
const BY_THE_CLOCK = /^(?:(\d+):)?(\d{1,3}):([0-5]\d(?:\.\d+)?)$/;

/**
 * @param {string | null} text
 * @returns {number | null} seconds
 */
export function parseStartTime_s(text) {
  const written = text?.trim().toLowerCase();
  const match = written && (IN_WORDS.exec(written) ?? BY_THE_CLOCK.exec(written));
  if (!match) return null;
  const [hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0));
  return (hours ?? 0) * 3600 + (minutes ?? 0) * 60 + (seconds ?? 0);
}
