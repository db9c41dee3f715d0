/** Reads a video's storyboard: WebVTT whose cues name parts of sprites. Fetched once for a page. */

const TIMEOUT_MS = 10_000;
const CUE = /^(\S+)#xywh=(\d+),(\d+),(\d+),(\d+)$/;

/** @typedef {{ url: string, x: number, y: number, width: number, height: number }} Frame */

/** @type {Map<string, Promise<Frame[]>>} */
const storyboards = new Map();
/** @type {Map<string, Promise<HTMLImageElement>>} */
const sprites = new Map();

/**
 * @param {string} url
 * @returns {Promise<Frame[]>} its pictures, evenly spread over the video
 */
export function loadStoryboard(url) {
  return remembered(storyboards, url, async () => {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return parse(await response.text(), response.url);
  });
}

/**
 * @param {string} url
 * @returns {Promise<HTMLImageElement>} once it can be drawn
 */
export function sprite(url) {
  return remembered(sprites, url, async () => {
    const image = new Image();
    image.src = url;
    await image.decode();
    return image;
  });
}

/**
 * @param {readonly Frame[]} frames
 * @param {number} share of the video, from 0 to less than 1
 */
export function frameAt(frames, share) {
  return frames[Math.floor(share * frames.length)];
}

/**
 * @param {string} text
 * @param {string} base
 * @returns {Frame[]}
 */
function parse(text, base) {
  /** @type {Frame[]} */
  const frames = [];
  for (const line of text.split(/\r?\n/)) {
    const cue = CUE.exec(line.trim());
    if (!cue) continue;
    const [x = 0, y = 0, width = 0, height = 0] = cue.slice(2).map(Number);
    frames.push({ url: new URL(cue[1] ?? "", base).href, x, y, width, height });
  }
  return frames;
}

/**
 * @template T
 * @param {Map<string, Promise<T>>} known
 * @param {string} key
 * @param {() => Promise<T>} load
 * @returns {Promise<T>}
 */
function remembered(known, key, load) {
  const found = known.get(key);
  if (found) return found;
  const loading = load();
  known.set(key, loading);
  // What failed may be tried again.
  loading.catch(() => known.delete(key));
  return loading;
}
