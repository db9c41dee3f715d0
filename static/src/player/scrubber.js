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
      const next_s = this.#next_s;
      this.#next_s = null;
      if (next_s !== null) video.currentTime = next_s;
    };
    video.addEventListener("seeked", seekNext, { signal });
  }

  /** Return the position, or that of the last seek. */
  get position_s() {
    return this.#next_s ?? this.video.currentTime;
  }

  /** @param {number} to_s */
  seek(to_s) {
    if (this.video.seeking) this.#next_s = to_s;
    else this.video.currentTime = to_s;
  }
}
