/** At most two files are sent at once; the others wait in the order of their asking. */

/** Two files with three connections each are all that browsers open to one host (HTTP/1.1). */
const LIMIT = 2;

let taken = 0;
/** @type {(() => void)[]} */
let queue = [];

/**
 * @param {AbortSignal} signal rejects with its reason
 * @returns {Promise<() => void>} to be called once, when the slot is free again
 */
export async function takeSlot(signal) {
  signal.throwIfAborted();
  if (taken < LIMIT) taken += 1;
  else await myTurn(signal);
  return release;
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function myTurn(signal) {
  return new Promise((resolve, reject) => {
    queue.push(resolve);
    const leave = () => {
      // Whoever has been called already has its slot, and gives it back in the usual way.
      queue = queue.filter((waiter) => waiter !== resolve);
      reject(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
  });
}

/** Hands the slot to the next in line. */
function release() {
  const next = queue.shift();
  if (next) next();
  else taken -= 1;
}
