/**
 * Plays the HLS stream of <video data-player data-src>: by hls.js where Media Source Extensions
 * exist, else by the browser itself. hls.js is a file of its own, fetched on pages with a player.
 */

/** @typedef {import("hls.js").default} Hls */

const RECOVERY_LIMIT = 3;

/** @type {import("./lifecycle.js").Behaviour} */
export const playerBehaviour = {
  selector: "video[data-player]",
  start(element, signal) {
    if (!(element instanceof HTMLVideoElement)) return;
    const player = new Player(element, signal);
    player.open();
  },
};

class Player {
  /** @type {Hls | null} */
  #hls = null;
  #recoveries = 0;

  /**
   * @param {HTMLVideoElement} video
   * @param {AbortSignal} signal
   */
  constructor(video, signal) {
    this.video = video;
    this.signal = signal;
    this.source = video.dataset.src ?? "";
    this.trouble = video.parentElement?.querySelector("[data-player-trouble]") ?? null;
    const retry = this.trouble?.querySelector("button");
    retry?.addEventListener("click", () => this.#retry(), { signal });
    video.addEventListener("playing", () => this.#playsAgain(), { signal });
    document.body.addEventListener("quality-added", () => this.#adoptQualities(), { signal });
    signal.addEventListener("abort", () => this.#close());
  }

  async open() {
    try {
      const { default: Hls } = await import("hls.js");
      if (this.signal.aborted) return;
      if (Hls.isSupported()) this.#openWith(Hls);
      else this.#openNatively();
    } catch {
      // The chunk with hls.js didn't arrive.
      this.#showTrouble();
    }
  }

  /** @param {typeof import("hls.js").default} HlsClass */
  #openWith(HlsClass) {
    // The content security policy allows no worker made from a blob.
    const hls = new HlsClass({ enableWorker: false, capLevelToPlayerSize: true });
    this.#hls = hls;
    hls.on(HlsClass.Events.ERROR, (_event, error) => {
      if (error.fatal) this.#recover(error.type === HlsClass.ErrorTypes.MEDIA_ERROR);
    });
    hls.attachMedia(this.video);
    hls.loadSource(this.source);
  }

  #openNatively() {
    this.video.addEventListener("error", () => this.#showTrouble(), { signal: this.signal });
    this.video.src = this.source;
  }

  /** @param {boolean} isMediaError */
  #recover(isMediaError) {
    this.#recoveries += 1;
    if (this.#recoveries > RECOVERY_LIMIT) this.#showTrouble();
    else if (isMediaError) this.#hls?.recoverMediaError();
    // Before the playlist has loaded there's nothing to resume: start over.
    else if (this.#hls?.levels.length) this.#hls.startLoad();
    else this.#showTrouble();
  }

  #playsAgain() {
    this.#recoveries = 0;
    if (this.trouble instanceof HTMLElement) this.trouble.hidden = true;
  }

  #showTrouble() {
    if (this.trouble instanceof HTMLElement) this.trouble.hidden = false;
  }

  /** The playlist has grown. It is read again without disturbing who is watching. */
  #adoptQualities() {
    const { video, signal } = this;
    if (video.paused) this.#reopen();
    else video.addEventListener("pause", () => this.#reopen(), { once: true, signal });
  }

  #retry() {
    this.video.focus();
    return this.#reopen();
  }

  async #reopen() {
    const position_s = this.video.currentTime;
    this.#close();
    this.#recoveries = 0;
    if (this.trouble instanceof HTMLElement) this.trouble.hidden = true;
    this.video.addEventListener(
      "loadedmetadata",
      () => {
        this.video.currentTime = position_s;
      },
      { once: true, signal: this.signal },
    );
    await this.open();
  }

  #close() {
    this.#hls?.destroy();
    this.#hls = null;
  }
}
