/**
 * Follows published videos until they are ready or have failed, by the portal's own documents about
 * their transcoding. After a failure it pauses longer and longer, and as long as it is asked to.
 */

import { SomeoneElse } from "./accounts/sign-in-again.js";
import { Backoff } from "./backoff.js";
import { Refused, requestJson } from "./requests.js";

const PAUSE_MS = 2_000;
/** However many videos there are, the portal is not asked more often. */
const SPACING_MS = 500;
/** Once the pauses of the retry policy are used up. */
const LONGEST_PAUSE_MS = 60_000;

/**
 * How a video stands. `lost`: it is gone, or not to be seen any more by who is signed in now.
 * @typedef {object} Processing
 * @property {"waiting" | "probing" | "transcoding" | "finishing" | "ready" | "failed" | "lost"} stage
 * @property {number} percent
 * @property {number | null} queuePosition 1 is next
 * @property {boolean} hasPoster
 * @property {string} failure in words; empty where it has not failed
 */

const FINAL = new Set(["ready", "failed", "lost"]);

export class Follower {
  /** Ids of videos, by what their follower calls them. @type {Map<number, string>} */
  #videos = new Map();
  #isRunning = false;
  #backoff = new Backoff();

  /**
   * @param {string} url of all videos in the API
   * @param {(number: number, processing: Processing) => void} tell
   * @param {AbortSignal} signal ends all
   */
  constructor(url, tell, signal) {
    this.url = url;
    this.tell = tell;
    this.signal = signal;
  }

  /** @param {number} number @param {string} videoId */
  follow(number, videoId) {
    this.#videos.set(number, videoId);
    if (!this.#isRunning) this.#run();
  }

  async #run() {
    this.#isRunning = true;
    while (this.#videos.size && !this.signal.aborted) await sleep(await this.#round());
    this.#isRunning = false;
  }

  /** Asks for each in turn. @returns {Promise<number>} how long to pause, in milliseconds */
  async #round() {
    for (const [number, videoId] of [...this.#videos]) {
      try {
        const processing = await this.#read(videoId);
        if (FINAL.has(processing.stage)) this.#videos.delete(number);
        this.tell(number, processing);
      } catch (error) {
        const asked_s = error instanceof Refused ? (error.retryAfter_s ?? 0) : 0;
        return this.#backoff.pause_ms({ asked_ms: asked_s * 1000 }) ?? LONGEST_PAUSE_MS;
      }
    }
    this.#backoff = new Backoff();
    return Math.max(PAUSE_MS, SPACING_MS * this.#videos.size);
  }

  /** @param {string} videoId @returns {Promise<Processing>} @throws {Error} for now */
  async #read(videoId) {
    try {
      const url = `${this.url}/${videoId}/transcode`;
      return processingOf(await requestJson("GET", url, { signal: this.signal }));
    } catch (error) {
      const isPassing = !(error instanceof Refused) || error.status >= 500 || error.status === 429;
      if (isPassing && !(error instanceof SomeoneElse)) throw error;
      return { stage: "lost", percent: 0, queuePosition: null, hasPoster: false, failure: "" };
    }
  }
}

/** @param {any} document about a video's transcoding @returns {Processing} */
function processingOf({ stage, percent, queuePosition, posterUrl, failure }) {
  const hasPoster = posterUrl !== null;
  return { stage, percent, queuePosition, hasPoster, failure: failure?.message ?? "" };
}

/** @param {number} pause_ms @returns {Promise<void>} */
function sleep(pause_ms) {
  return new Promise((resolve) => setTimeout(resolve, pause_ms));
}
