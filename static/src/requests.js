/** Requests of scripts. Refusals with their problem details (RFC 9457) become errors. */

import { gettext, language } from "./messages.js";
import { retryAfterOf_s } from "./retry-after.js";

const TIMEOUT_MS = 30_000;
/** Statuses of temporary conditions, besides those of servers' faults. */
const TEMPORARY_STATUSES = [408, 425, 429];
/** Content type of the fields of a form. */
export const FORM = "application/x-www-form-urlencoded";
/** Header with the language in which a page needs the texts of a response. */
export const LANGUAGE_HEADER = "Portal-Language";

/** @typedef {{ pointer: string, message: string }} FieldFault */

/** A request that was refused, with the reason, or a redirect that isn't followed (status 0). */
export class Refused extends Error {
  /**
   * `code` is the error's stable name, and `detail` its text; both may be empty. `freeAt` is the
   * time when a quota has room again, in ISO 8601. `present` is the version that another person
   * saved.
   * @param {number} status
   * @param {{ code?: string, detail?: string, faults?: FieldFault[], retryAfter_s?: number,
   *   freeAt?: string, present?: any }} [problem]
   */
  constructor(status, problem = {}) {
    const { code = "", detail = "", faults = [], retryAfter_s = 0, freeAt, present } = problem;
    super(detail || `status ${status}`);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.faults = faults;
    this.retryAfter_s = retryAfter_s;
    this.freeAt = freeAt;
    this.present = present;
  }
}

/** Message for an ended session, beside a link to sign in. */
export const SIGNED_OUT = gettext("You are signed out. Sign in to continue.");

/** Return whether the request needs a session. @param {unknown} error */
export function isSignedOut(error) {
  return error instanceof Refused && error.status === 401;
}

/** Return whether the response was a redirect. @param {unknown} error */
export function isRedirect(error) {
  return error instanceof Refused && error.status === 0;
}

/** No response: no connection, or none in time. */
export class NoResponse extends Error {}

/** Return whether a status means a temporary condition. @param {number} status */
export function isTemporary(status) {
  return status >= 500 || TEMPORARY_STATUSES.includes(status);
}

/** Return whether the same request may succeed later. @param {unknown} error */
export function canRetry(error) {
  if (error instanceof NoResponse) return true;
  return error instanceof Refused && isTemporary(error.status);
}

/**
 * The body is JSON, or a text with a `contentType`. A `keepalive` request may outlive the page.
 * @typedef {{ accept?: string, body?: unknown, contentType?: string, ifMatch?: string,
 *   idempotencyKey?: string, signal?: AbortSignal, timeout_ms?: number, keepalive?: boolean,
 *   cache?: RequestCache, redirect?: RequestRedirect }} Options
 */

/**
 * Send a request once, and return what is read of the response.
 * @template T
 * @param {string} method @param {string} url @param {(response: Response) => T | Promise<T>} read
 * @param {Options} [options] @returns {Promise<T>}
 * @throws {Refused | NoResponse} or the signal's reason
 */
export async function send(method, url, read, options = {}) {
  const { accept, body, contentType, ifMatch, idempotencyKey, signal } = options;
  const { timeout_ms = TIMEOUT_MS, keepalive, cache, redirect } = options;
  const timeout = AbortSignal.timeout(timeout_ms);
  /** @type {Record<string, string>} */
  const headers = {};
  // Other sites, and this one from a sandboxed frame, would have to allow this header.
  if (isOwnAddress(url)) headers[LANGUAGE_HEADER] = language;
  if (accept) headers.Accept = accept;
  if (body !== undefined) headers["Content-Type"] = contentType ?? "application/json";
  if (ifMatch) headers["If-Match"] = ifMatch;
  if (idempotencyKey) headers["Idempotency-Key"] = idempotencyKey;
  try {
    const response = await fetch(url, {
      method,
      headers,
      body: contentType ? String(body) : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      keepalive,
      cache,
      redirect,
    });
    if (!response.ok) throw await refusalOf(response);
    return await read(response);
  } catch (error) {
    if (error instanceof Refused) throw error;
    signal?.throwIfAborted();
    throw new NoResponse("no response", { cause: error });
  }
}

/** Return whether an address is one of the page's origin. @param {string} url */
function isOwnAddress(url) {
  // Tests of scripts run without a page.
  return new URL(url, globalThis.location?.href ?? "http://localhost").origin === globalThis.origin;
}

/**
 * Return the text of a response.
 * @param {string} url @param {Options} [options] @throws {Refused | NoResponse} or the signal's reason
 */
export function fetchText(url, options) {
  return send("GET", url, (response) => response.text(), options);
}

/** Return the error of a response. @param {Response} response @returns {Promise<Refused>} */
async function refusalOf(response) {
  // A proxy may respond with HTML; then only the status is known.
  const { errors: faults, ...problem } = await response.json().catch(() => ({}));
  return new Refused(response.status, {
    ...problem,
    faults,
    retryAfter_s: retryAfterOf_s(response.headers),
  });
}
