/** Requests to the portal's JSON API. Problem details (RFC 9457) become errors. */

import {
  AccountChanged,
  countSignIns,
  hasAccountChanged,
  requireSameAccount,
  waitForSignIn,
} from "./accounts/sign-in-again.js";

const TIMEOUT_MS = 30_000;

/** @typedef {{ pointer: string, message: string }} FieldFault */

/** A request that the portal refused, with its reason. */
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
export const SIGNED_OUT = "You are signed out. Sign in to continue.";

/** Return whether the request needs a session. @param {unknown} error */
export function isSignedOut(error) {
  return error instanceof Refused && error.status === 401;
}

/** Return whether the portal doesn't know the upload. @param {unknown} error */
function isUnknownUpload(error) {
  if (!(error instanceof Refused)) return false;
  const isKeyAtFault = error.faults.some(({ pointer }) => pointer === "/key");
  return isKeyAtFault || error.code === "upload_not_issued";
}

/** Return whether the person has to sign in again with the same account. @param {unknown} error */
export function needsSignIn(error) {
  return isSignedOut(error) || error instanceof AccountChanged;
}

/** No response: no connection, or none in time. */
export class NoResponse extends Error {}

/** @param {unknown} cause @returns {never} @throws {NoResponse} */
function throwNoResponse(cause) {
  throw new NoResponse("no response", { cause });
}

/**
 * The body is JSON, or a text with a `contentType`. A `keepalive` request may outlive the page.
 * @typedef {{ body?: unknown, contentType?: string, ifMatch?: string, idempotencyKey?: string,
 *   signal?: AbortSignal, timeout_ms?: number, keepalive?: boolean }} Options
 */

/**
 * Send a request, and return the JSON of the response.
 * @param {string} method @param {string} url @param {Options} [options]
 * @returns {Promise<any>} null if the response has no body
 * @throws {Refused | NoResponse | AccountChanged} or the signal's reason
 */
export async function requestJson(method, url, options) {
  return (await request(method, url, options)).json;
}

/**
 * Send a request. If the session has ended, ask the person to sign in and send it again, unless the
 * request outlives the page.
 * @param {string} method @param {string} url @param {Options} [options]
 * @returns {Promise<{ json: any, etag: string }>}
 * @throws {Refused | NoResponse | AccountChanged} or the signal's reason
 */
export async function request(method, url, options = {}) {
  for (;;) {
    requireSameAccount();
    const signInsBefore = countSignIns();
    try {
      return await send(method, url, options);
    } catch (error) {
      if (options.keepalive) throw error;
      // The portal hides an upload from other accounts.
      if (isUnknownUpload(error) && (await hasAccountChanged().catch(throwNoResponse)))
        throw new AccountChanged();
      if (!isSignedOut(error)) throw error;
      if (!(await waitForSignIn(signInsBefore))) throw error;
    }
  }
}

/**
 * Send a request once.
 * @type {(method: string, url: string, options: Options) => Promise<{ json: any, etag: string }>}
 */
async function send(method, url, options) {
  const { body, contentType, ifMatch, idempotencyKey, signal, keepalive = false } = options;
  const timeout = AbortSignal.timeout(options.timeout_ms ?? TIMEOUT_MS);
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
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
    });
    if (!response.ok) throw await refusalOf(response);
    const json = response.status === 204 ? null : await response.json();
    return { json, etag: response.headers.get("ETag") ?? "" };
  } catch (error) {
    if (error instanceof Refused) throw error;
    signal?.throwIfAborted();
    return throwNoResponse(error);
  }
}

/** Return the error of a response. @param {Response} response @returns {Promise<Refused>} */
async function refusalOf(response) {
  // A proxy may respond with HTML; then only the status is known.
  const { errors: faults, ...problem } = await response.json().catch(() => ({}));
  const retryAfter_s = Number.parseInt(response.headers.get("Retry-After") ?? "", 10) || 0;
  return new Refused(response.status, { ...problem, faults, retryAfter_s });
}
