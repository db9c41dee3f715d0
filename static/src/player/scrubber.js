/**
 * Seeks that follow a moving handle. A seek in progress is finished first, so that its frame is
 * shown; of the times that are asked for meanwhile, only the last one is sought.
 */
export class Scrubber {
  /** @type {number | null} */
  #next_s = null;

  /** @param {HTMLVideoElement} video @param {AbortSignal} signal */
  constructor(video, signal) {
    this.video = video;
    const seekNext = () => {
      if (this.#next_s !== null) this.jump(this.#next_s);
    };
    video.addEventListener("seeked", seekNext, { signal });
  }

  /** Return the position, or that of the last seek. */
  get position_s() {
    return this.#next_s ?? this.video.currentTime;
  }

  get isSeeking() {
    return this.video.seeking || this.#next_s !== null;
  }

  /** Seek after the seek in progress. @param {number} to_s */
  seek(to_s) {
    if (this.video.seeking) this.#next_s = to_s;
    else this.jump(to_s);
  }

  /** Seek in place of the seek in progress. @param {number} to_s */
  jump(to_s) {
    this.#next_s = null;
    this.video.currentTime = to_s;
  }
}
