/** Pause that a busy server asks for. */

/** Return the time after which a server asks for another request. @param {Headers} headers */
export function retryAfterOf_s(headers) {
  return Number.parseInt(headers.get("Retry-After") ?? "", 10) || 0;
}
