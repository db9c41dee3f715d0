/** JSON calls to the portal's own API, with RFC 9457 problem details turned into errors. */

import { anySignal } from "./any-signal.js";

const TIMEOUT_MS = 30_000;

/** @typedef {{ pointer: string, message: string }} FieldFault */

/** The portal refused a request, and said why. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} code stable name of the error, or empty
   * @param {string} detail in words for people, or empty
   * @param {FieldFault[]} faults
   * @param {number | null} retryAfter_s
   */
  constructor(status, code, detail, faults, retryAfter_s) {
    super(detail || `status ${status}`);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.faults = faults;
    this.retryAfter_s = retryAfter_s;
  }
}

/** There was no answer: no connection, or none in time. */
export class NoAnswer extends Error {}

/**
 * @param {string} url
 * @param {unknown} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>} the JSON of a 2xx answer
 * @throws {Refused | NoAnswer} or the signal's reason
 */
export function postJson(url, body, signal) {
  return requestJson("POST", url, { body, signal });
}

/**
 * @typedef {object} Options
 * @property {unknown} [body]
 * @property {string} [ifMatch] the ETag of what is to be changed
 * @property {AbortSignal} [signal]
 * @property {number} [timeout_ms]
 * @property {boolean} [keepalive] lets the request outlive the page
 */

/**
 * @param {string} method
 * @param {string} url
 * @param {Options} [options]
 * @returns {Promise<any>} the JSON of a 2xx answer, or null where it has none
 * @throws {Refused | NoAnswer} or the signal's reason
 */
export async function requestJson(method, url, options) {
  return (await request(method, url, options)).json;
}

/**
 * @param {string} method
 * @param {string} url
 * @param {Options} [options]
 * @returns {Promise<{ json: any, etag: string }>} a 2xx answer; null and empty where it has none
 * @throws {Refused | NoAnswer} or the signal's reason
 */
export async function request(method, url, options = {}) {
  const { body, ifMatch, signal, timeout_ms = TIMEOUT_MS, keepalive = false } = options;
  const timeout = AbortSignal.timeout(timeout_ms);
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (ifMatch) headers["If-Match"] = ifMatch;
  try {
    const response = await fetch(url, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? anySignal([signal, timeout]) : timeout,
      keepalive,
    });
    if (!response.ok) throw await refusal(response);
    const json = response.status === 204 ? null : await response.json();
    return { json, etag: response.headers.get("ETag") ?? "" };
  } catch (error) {
    if (error instanceof Refused) throw error;
    signal?.throwIfAborted();
    throw new NoAnswer("no answer", { cause: error });
  }
}

/**
 * @param {Response} response
 * @returns {Promise<Refused>}
 */
async function refusal(response) {
  // A proxy in front may answer in HTML; then the status alone has to do.
  const problem = await response.json().catch(() => ({}));
  const faults = Array.isArray(problem.errors) ? problem.errors : [];
  const wait_s = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  return new Refused(
    response.status,
    typeof problem.code === "string" ? problem.code : "",
    typeof problem.detail === "string" ? problem.detail : "",
    faults,
    Number.isNaN(wait_s) ? null : wait_s,
  );
}
