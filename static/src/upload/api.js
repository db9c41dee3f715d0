/**
 * The portal's JSON API, as far as the upload page uses it. RFC 9457 problem details become errors.
 * Media bytes go to storage without the portal.
 */

import { anySignal } from "../any-signal.js";

const TIMEOUT_MS = 30_000;
/** Putting thousands of parts together may take storage a while. */
const COMPLETE_TIMEOUT_MS = 90_000;
const REACH_TIMEOUT_MS = 5_000;
const KEY = /^videos\/([0-9a-f]{32})\./;

/** @typedef {{ pointer: string, message: string }} FieldFault */
/**
 * @typedef {{ presignUrl: string, uploadsUrl: string, publishUrl: string,
 *   storageUrl: string }} Urls
 */
/** @typedef {{ partNumber: number, sizeBytes: number, etag: string }} Part */
/**
 * @typedef {object} UploadState
 * @property {"pending" | "uploading" | "stored"} state
 * @property {number} sizeBytes
 * @property {number} partSizeBytes
 * @property {number} partCount
 * @property {Part[]} parts in storage
 */

/** The portal refused a request, and said why. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {object} problem
   * @param {string} [problem.code] stable name of the error, or empty
   * @param {string} [problem.detail] in words for people, or empty
   * @param {FieldFault[]} [problem.faults]
   * @param {number | null} [problem.retryAfter_s]
   */
  constructor(status, { code = "", detail = "", faults = [], retryAfter_s = null } = {}) {
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

/** The portal's own id of the upload with this key, or empty. @param {string} key */
export function uploadIdOf(key) {
  return KEY.exec(key)?.[1] ?? "";
}

export class Api {
  /** @param {Urls} urls */
  constructor(urls) {
    this.urls = urls;
  }

  /**
   * A new key, and an address for one PUT of the whole file.
   * @param {File} file
   * @param {string} contentType
   * @param {AbortSignal} signal
   * @returns {Promise<{ key: string, uploadUrl: string }>}
   */
  presign(file, contentType, signal) {
    const body = { fileName: file.name, contentType };
    return requestJson("POST", this.urls.presignUrl, { body, signal });
  }

  /**
   * Starts an upload in parts, or tells how far it is. Not to be aborted: an upload that starts
   * after its cancellation would stay.
   * @param {string} key
   * @param {number} sizeBytes
   * @returns {Promise<UploadState>}
   */
  begin(key, sizeBytes) {
    return requestJson("POST", this.urls.uploadsUrl, { body: { key, sizeBytes } });
  }

  /**
   * @param {string} key
   * @param {AbortSignal} [signal]
   * @returns {Promise<UploadState>} as storage itself has it
   */
  read(key, signal) {
    return requestJson("GET", this.#uploadUrl(key), { signal });
  }

  /**
   * @param {string} key
   * @param {number} number
   * @param {AbortSignal} signal
   * @returns {Promise<string>} address for one PUT of this part
   */
  async signPart(key, number, signal) {
    const url = `${this.#uploadUrl(key)}/parts/${number}`;
    return (await requestJson("POST", url, { signal })).uploadUrl;
  }

  /**
   * Puts the parts together.
   * @param {string} key
   * @param {AbortSignal} signal
   * @returns {Promise<UploadState>}
   */
  complete(key, signal) {
    const url = `${this.#uploadUrl(key)}/complete`;
    return requestJson("POST", url, { signal, timeout_ms: COMPLETE_TIMEOUT_MS });
  }

  /** Removes what has been sent. @param {string} key */
  remove(key) {
    return requestJson("DELETE", this.#uploadUrl(key), { keepalive: true });
  }

  /**
   * @param {unknown} body
   * @returns {Promise<{ id: string, title: string }>} with the title that the video has by now
   */
  publish(body) {
    return requestJson("POST", this.urls.publishUrl, { body });
  }

  /** @param {string} videoId */
  readMetadata(videoId) {
    return request("GET", this.#metadataUrl(videoId));
  }

  /**
   * @param {string} videoId
   * @param {unknown} body
   * @param {string} ifMatch the ETag of what is to be changed
   */
  writeMetadata(videoId, body, ifMatch) {
    return requestJson("PUT", this.#metadataUrl(videoId), { body, ifMatch });
  }

  /**
   * Whether portal and storage answer, in whatever way. A browser is "offline" on a machine without
   * any network, where a portal and its storage on that very machine can be reached all the same.
   * @param {AbortSignal} signal
   */
  async isReachable(signal) {
    const init = /** @type {RequestInit} */ ({
      method: "HEAD",
      mode: "no-cors",
      cache: "no-store",
      signal: anySignal([signal, AbortSignal.timeout(REACH_TIMEOUT_MS)]),
    });
    try {
      await Promise.all([location.href, this.urls.storageUrl].map((url) => fetch(url, init)));
      return true;
    } catch {
      return false;
    }
  }

  /** @param {string} key */
  #uploadUrl(key) {
    return `${this.urls.uploadsUrl}/${uploadIdOf(key)}`;
  }

  /** @param {string} videoId */
  #metadataUrl(videoId) {
    return `${this.urls.publishUrl}/${videoId}/metadata`;
  }
}

/**
 * @typedef {object} Options
 * @property {unknown} [body]
 * @property {string} [ifMatch]
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
async function requestJson(method, url, options) {
  return (await request(method, url, options)).json;
}

/**
 * @param {string} method
 * @param {string} url
 * @param {Options} [options]
 * @returns {Promise<{ json: any, etag: string }>}
 */
async function request(method, url, options = {}) {
  const { body, ifMatch, signal, timeout_ms = TIMEOUT_MS, keepalive = false } = options;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeout_ms);
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (ifMatch) headers["If-Match"] = ifMatch;
  try {
    const response = await fetch(url, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? anySignal([signal, late.signal]) : late.signal,
      keepalive,
    });
    if (!response.ok) throw await refusal(response);
    const json = response.status === 204 ? null : await response.json();
    return { json, etag: response.headers.get("ETag") ?? "" };
  } catch (error) {
    if (error instanceof Refused) throw error;
    signal?.throwIfAborted();
    throw new NoAnswer("no answer", { cause: error });
  } finally {
    clearTimeout(timer);
    // Ends the listening to a signal that may live for thousands of requests.
    late.abort();
  }
}

/** @param {Response} response @returns {Promise<Refused>} */
async function refusal(response) {
  // A proxy in front may answer in HTML; then the status alone has to do.
  const problem = await response.json().catch(() => ({}));
  const wait_s = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  return new Refused(response.status, {
    code: typeof problem.code === "string" ? problem.code : "",
    detail: typeof problem.detail === "string" ? problem.detail : "",
    faults: Array.isArray(problem.errors) ? problem.errors : [],
    retryAfter_s: Number.isNaN(wait_s) ? null : wait_s,
  });
}
