/**
 * What the player saves in this browser: its settings, and where each video was left.
 * Storage may be full, blocked or not there at all (a frame on another site): then nothing is
 * saved, and nothing else changes.
 */

const SETTINGS_KEY = "portal.player";
const POSITIONS_KEY = "portal.positions";
// Positions of more videos than this are forgotten, those not watched for longest first.
const POSITIONS_LIMIT = 100;
// Less than this was only a look.
const WATCHED_S = 5;
// What is left of a video that counts as seen: this share of it, but no more than so long.
const ENDING_SHARE = 0.05;
const ENDING_S = 20;

/**
 * @typedef {object} Settings
 * @property {number} [volume]
 * @property {boolean} [isMuted]
 * @property {number} [speed]
 * @property {string} [captions] the language, or empty for none
 * @property {boolean} [hasLetterKeys] whether single characters are keys of the player
 * @property {number} [quality] the lines of its name (480 for 480p), or 0 for any
 */

/** @returns {Settings} */
export function settings() {
  const { volume, isMuted, speed, captions, quality, hasLetterKeys } = read(SETTINGS_KEY);
  return {
    volume: isWithin(volume, 0, 1) ? volume : undefined,
    isMuted: typeof isMuted === "boolean" ? isMuted : undefined,
    speed: isWithin(speed, 0.25, 4) ? speed : undefined,
    captions: typeof captions === "string" ? captions : undefined,
    hasLetterKeys: typeof hasLetterKeys === "boolean" ? hasLetterKeys : undefined,
    quality: isWithin(quality, 0, Number.MAX_VALUE) ? quality : undefined,
  };
}

/** @param {Settings} changes */
export function saveSettings(changes) {
  write(SETTINGS_KEY, { ...settings(), ...changes });
}

/**
 * @param {string} videoId
 * @returns {number | null} seconds
 */
export function position_s(videoId) {
  const entry = read(POSITIONS_KEY)[videoId];
  return Array.isArray(entry) && isWithin(entry[0], 0, Number.MAX_VALUE) ? entry[0] : null;
}

/**
 * @param {string} videoId
 * @param {number} at_s
 * @param {number} duration_s
 */
export function savePosition(videoId, at_s, duration_s) {
  const ending_s = Math.min(duration_s * ENDING_SHARE, ENDING_S);
  const isWorthIt = at_s >= WATCHED_S && at_s < duration_s - ending_s;
  const { [videoId]: _old, ...others } = read(POSITIONS_KEY);
  const entries = Object.entries(others).filter(([, entry]) => Array.isArray(entry));
  if (isWorthIt) entries.push([videoId, [Math.floor(at_s), Date.now()]]);
  entries.sort(([, a], [, b]) => b[1] - a[1]);
  write(POSITIONS_KEY, Object.fromEntries(entries.slice(0, POSITIONS_LIMIT)));
}

/**
 * @param {unknown} value
 * @param {number} least
 * @param {number} most
 * @returns {value is number}
 */
function isWithin(value, least, most) {
  return typeof value === "number" && value >= least && value <= most;
}

/**
 * @param {string} key
 * @returns {Record<string, any>}
 */
function read(key) {
  try {
    const value = JSON.parse(localStorage.getItem(key) ?? "{}");
    return value !== null && typeof value === "object" ? value : {};
  } catch {
    return {};
  }
}

/**
 * @param {string} key
 * @param {unknown} value
 */
function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Remembering is a comfort, not worth a word when it can't be had.
  }
}
