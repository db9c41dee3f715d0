/** Requests to the portal's JSON API. RFC 9457 problem details become errors. */

import {
  isSomeoneElse,
  requireSamePerson,
  SomeoneElse,
  signedInAgain,
  signIns,
} from "./accounts/sign-in-again.js";

const TIMEOUT_MS = 30_000;

/** @typedef {{ pointer: string, message: string }} FieldFault */

/** The portal refused a request, and said why. */
export class Refused extends Error {
  /**
   * `code` is the error's stable name, `detail` in words for people; both may be empty. `freeAt` is
   * when a quota has room again, in ISO 8601, `present` what someone else has saved.
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

/** What to do when the session has ended meanwhile; a link to sign in stands beside it. */
export const SIGNED_OUT = "You are signed out. Sign in to continue.";

/** Whether the portal would do it for someone who is signed in. @param {unknown} error */
export function isSignedOut(error) {
  return error instanceof Refused && error.status === 401;
}

/** @param {unknown} error */
function isUnknownUpload(error) {
  if (!(error instanceof Refused)) return false;
  const isKeyAtFault = error.faults.some(({ pointer }) => pointer === "/key");
  return isKeyAtFault || error.code === "upload_not_issued";
}

/** Whether the cure is to sign in, as who was signed in before. @param {unknown} error */
export function needsSignIn(error) {
  return isSignedOut(error) || error instanceof SomeoneElse;
}

/** There was no answer: no connection, or none in time. */
export class NoAnswer extends Error {}

/** @param {unknown} cause @returns {never} @throws {NoAnswer} */
function noAnswer(cause) {
  throw new NoAnswer("no answer", { cause });
}

/**
 * The body is JSON unless it is a text of a `contentType`. `keepalive` lets the request outlive the
 * page.
 * @typedef {{ body?: unknown, contentType?: string, ifMatch?: string, signal?: AbortSignal, timeout_ms?: number,
 *   keepalive?: boolean }} Options
 */

/**
 * @param {string} method @param {string} url @param {Options} [options]
 * @returns {Promise<any>} the JSON of a 2xx answer, or null where it has none
 * @throws {Refused | NoAnswer | SomeoneElse} or the signal's reason
 */
export async function requestJson(method, url, options) {
  return (await request(method, url, options)).json;
}

/**
 * Who is signed out meanwhile is asked to sign in, and the request is sent again. Only one that
 * outlives the page is worth no question.
 * @param {string} method @param {string} url @param {Options} [options]
 * @returns {Promise<{ json: any, etag: string }>}
 * @throws {Refused | NoAnswer | SomeoneElse} or the signal's reason
 */
export async function request(method, url, options = {}) {
  for (;;) {
    requireSamePerson();
    const since = signIns();
    try {
      return await send(method, url, options);
    } catch (error) {
      if (options.keepalive) throw error;
      // For another person an upload is one that the portal doesn't know.
      if (isUnknownUpload(error) && (await isSomeoneElse().catch(noAnswer)))
        throw new SomeoneElse();
      if (!isSignedOut(error)) throw error;
      if (!(await signedInAgain(since))) throw error;
    }
  }
}

/**
 * @type {(method: string, url: string, options: Options) => Promise<{ json: any, etag: string }>}
 */
async function send(method, url, options) {
  const { body, contentType, ifMatch, signal, keepalive = false } = options;
  const late = AbortSignal.timeout(options.timeout_ms ?? TIMEOUT_MS);
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = contentType ?? "application/json";
  if (ifMatch) headers["If-Match"] = ifMatch;
  try {
    const response = await fetch(url, {
      method,
      headers,
      body: contentType ? String(body) : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, late]) : late,
      keepalive,
    });
    if (!response.ok) throw await refusal(response);
    const json = response.status === 204 ? null : await response.json();
    return { json, etag: response.headers.get("ETag") ?? "" };
  } catch (error) {
    if (error instanceof Refused) throw error;
    signal?.throwIfAborted();
    return noAnswer(error);
  }
}

/** @param {Response} response @returns {Promise<Refused>} */
async function refusal(response) {
  // A proxy in front may answer in HTML; then the status alone has to do.
  const { errors: faults, ...told } = await response.json().catch(() => ({}));
  const retryAfter_s = Number.parseInt(response.headers.get("Retry-After") ?? "", 10) || 0;
  return new Refused(response.status, { ...told, faults, retryAfter_s });
}
