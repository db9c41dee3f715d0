/**
 * `AbortSignal.any`, which is younger than the oldest browsers that are built for.
 * @param {AbortSignal[]} signals
 * @returns {AbortSignal} aborts as soon as one of them does, with its reason
 */
export function anySignal(signals) {
  const any = new AbortController();
  for (const signal of signals) {
    const stop = () => any.abort(signal.reason);
    if (signal.aborted) stop();
    // The first to abort ends the listening to all.
    else signal.addEventListener("abort", stop, { signal: any.signal });
  }
  return any.signal;
}
