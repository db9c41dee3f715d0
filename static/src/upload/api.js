/** The calls of the JSON API that the upload page uses. Media bytes go directly to storage. */

import { request, requestJson } from "../requests.js";

/** Storage may take long to assemble thousands of parts. */
const COMPLETE_TIMEOUT_MS = 90_000;
/** Contains the portal's id of the upload. */
const KEY = /^videos\/([0-9a-f]{32})\./;

/**
 * @typedef {{ presignUrl: string, uploadsUrl: string, publishUrl: string }} Urls
 * @typedef {{ partNumber: number, sizeBytes: number, etag: string }} Part
 * @typedef {{ state: "pending" | "uploading" | "stored", sizeBytes: number, partSizeBytes: number,
 *   partCount: number, parts: Part[] }} UploadState with the parts that storage has
 */

export class Api {
  /** @param {Urls} urls */
  constructor(urls) {
    this.urls = urls;
  }

  /**
   * Request a new key, and a URL for one PUT of the whole file.
   * @param {File} file @param {string} contentType @param {AbortSignal} signal
   * @returns {Promise<{ key: string, uploadUrl: string }>}
   */
  presign(file, contentType, signal) {
    const body = { fileName: file.name, contentType };
    return requestJson("POST", this.urls.presignUrl, { body, signal });
  }

  /**
   * Start an upload in parts, or return its state. It can't be aborted, because an upload that
   * starts after its cancellation would stay.
   * @param {string} key @param {number} sizeBytes @returns {Promise<UploadState>}
   */
  begin(key, sizeBytes) {
    return requestJson("POST", this.urls.uploadsUrl, { body: { key, sizeBytes } });
  }

  /** @param {string} key @param {AbortSignal} [signal] @returns {Promise<UploadState>} */
  read(key, signal) {
    return requestJson("GET", this.#uploadUrl(key), { signal });
  }

  /**
   * @param {string} key @param {number} number @param {AbortSignal} signal
   * @returns {Promise<string>} address for one PUT of this part
   */
  async signPart(key, number, signal) {
    const url = `${this.#uploadUrl(key)}/parts/${number}`;
    return (await requestJson("POST", url, { signal })).uploadUrl;
  }

  /**
   * Assemble the parts.
   * @param {string} key @param {AbortSignal} signal @returns {Promise<UploadState>}
   */
  complete(key, signal) {
    const url = `${this.#uploadUrl(key)}/complete`;
    return requestJson("POST", url, { signal, timeout_ms: COMPLETE_TIMEOUT_MS });
  }

  /** Delete the uploaded data. @param {string} key */
  remove(key) {
    return requestJson("DELETE", this.#uploadUrl(key), { keepalive: true });
  }

  /**
   * @param {{ visibility?: string }} details with who may see the video from the start
   * @returns {Promise<{ id: string, title: string }>} with the title that the video has by now
   */
  publish({ visibility, ...body }) {
    const query = visibility ? `?${new URLSearchParams({ visibility })}` : "";
    return requestJson("POST", this.urls.publishUrl + query, { body });
  }

  /** @param {string} videoId @param {"metadata" | "access"} what */
  readOf(videoId, what) {
    return request("GET", `${this.urls.publishUrl}/${videoId}/${what}`);
  }

  /**
   * @param {string} videoId @param {"metadata" | "access"} what @param {unknown} body
   * @param {string} ifMatch the ETag of what is to be changed
   */
  writeOf(videoId, what, body, ifMatch) {
    return requestJson("PUT", `${this.urls.publishUrl}/${videoId}/${what}`, { body, ifMatch });
  }

  /** @param {string} key */
  #uploadUrl(key) {
    return `${this.urls.uploadsUrl}/${KEY.exec(key)?.[1]}`;
  }
}
