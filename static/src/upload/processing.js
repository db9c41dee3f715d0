/**
 * Follows published videos until they are ready or have failed, by the portal's own documents about
 * their transcoding. After a failure it pauses longer and longer, and as long as it is asked to.
 */

import { SomeoneElse } from "../accounts/sign-in-again.js";
import { Backoff } from "../backoff.js";
import { Refused, requestJson } from "../requests.js";
import { isPassing } from "./failures.js";

const PAUSE_MS = 2_000;
/** However many videos there are, the portal is not asked more often. */
const SPACING_MS = 500;
/** Once the pauses of the retry policy are used up. */
const LONGEST_PAUSE_MS = 60_000;
const FINAL = new Set(["ready", "failed", "lost"]);

/**
 * How a video stands. `lost`: it is gone, or not to be seen any more by who is signed in now. The
 * `failure` is in words, and empty where it has not failed; of `queuePosition` 1 is next.
 * @typedef {{ stage: "waiting" | "probing" | "transcoding" | "finishing" | "ready" | "failed" | "lost",
 *   percent: number, queuePosition: number | null, hasPoster: boolean, failure: string }} Processing
 */

/** @type {Processing} */
const LOST = { stage: "lost", percent: 0, queuePosition: null, hasPoster: false, failure: "" };

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
  async follow(number, videoId) {
    this.#videos.set(number, videoId);
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#videos.size && !this.signal.aborted) {
      const pause_ms = await this.#round();
      await new Promise((resolve) => setTimeout(resolve, pause_ms));
    }
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
      const { posterUrl, failure, ...rest } = await requestJson("GET", url, {
        signal: this.signal,
      });
      return { ...rest, hasPoster: posterUrl !== null, failure: failure?.message ?? "" };
    } catch (error) {
      const isLost = error instanceof Refused && !isPassing(error.status);
      if (isLost || error instanceof SomeoneElse) return LOST;
      throw error;
    }
  }
}
