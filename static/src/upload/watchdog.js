/** Without a byte moving for this long a connection counts as lost. */
const STALL_LIMIT_MS = 60_000;

/** Calls `onStall` unless it is reset again and again, or stopped. */
export class Watchdog {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  onStall = () => {};

  reset() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.onStall(), STALL_LIMIT_MS);
  }

  stop() {
    clearTimeout(this.#timer);
  }
}
