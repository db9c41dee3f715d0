/** The portal's calls about one upload; the bytes go to storage without it. */

import { postJson, Refused, requestJson } from "../api.js";
import { canRetry } from "./failures.js";

/** @typedef {{ presign: string, uploads: string, storage: string }} Urls */
/** @typedef {{ partNumber: number, sizeBytes: number, etag: string }} Part */
/**
 * @typedef {object} UploadState
 * @property {"pending" | "uploading" | "stored"} state
 * @property {number} sizeBytes
 * @property {number} partSizeBytes
 * @property {number} partCount
 * @property {Part[]} parts in storage
 */

/** Putting thousands of parts together may take storage a while. */
const COMPLETE_TIMEOUT_MS = 90_000;
const REMOVAL_TRIES = 3;
const REMOVAL_PAUSE_MS = 2_000;
const KEY = /^videos\/([0-9a-f]{32})\./;

/**
 * The portal's own id of the upload with this key, or empty.
 * @param {string} key
 */
export function uploadIdOf(key) {
  return KEY.exec(key)?.[1] ?? "";
}

export class UploadApi {
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
    return postJson(this.urls.presign, { fileName: file.name, contentType }, signal);
  }

  /**
   * Starts sending in parts, or tells how far it is. Not to be aborted: an upload that starts
   * after its cancellation would stay.
   * @param {string} key
   * @param {number} sizeBytes
   * @returns {Promise<UploadState>}
   */
  begin(key, sizeBytes) {
    return postJson(this.urls.uploads, { key, sizeBytes });
  }

  /**
   * @param {string} key
   * @param {AbortSignal} signal
   * @returns {Promise<UploadState>} as storage itself sees it
   */
  read(key, signal) {
    return requestJson("GET", this.stateUrl(key), { signal });
  }

  /**
   * @param {string} key
   * @param {number} number
   * @param {AbortSignal} signal
   * @returns {Promise<string>} address for one PUT of this part
   */
  async signPart(key, number, signal) {
    const url = `${this.stateUrl(key)}/parts/${number}`;
    return (await requestJson("POST", url, { signal })).uploadUrl;
  }

  /**
   * Puts the parts together.
   * @param {string} key
   * @param {AbortSignal} signal
   * @returns {Promise<UploadState>}
   */
  complete(key, signal) {
    return requestJson("POST", `${this.stateUrl(key)}/complete`, {
      signal,
      timeout_ms: COMPLETE_TIMEOUT_MS,
    });
  }

  /**
   * Removes what has been sent.
   * @param {string} key
   */
  remove(key) {
    return requestJson("DELETE", this.stateUrl(key), { keepalive: true });
  }

  /**
   * Removes what has been sent, if that can be done; what is left is swept by the portal later.
   * @param {string} key
   */
  async giveUp(key) {
    for (let tries = 1; tries <= REMOVAL_TRIES; tries += 1) {
      try {
        await this.remove(key);
        return;
      } catch (error) {
        if (error instanceof Refused && !canRetry(error)) return;
        const asked_ms = error instanceof Refused ? (error.retryAfter_s ?? 0) * 1000 : 0;
        const pause_ms = Math.max(REMOVAL_PAUSE_MS * tries, asked_ms);
        await new Promise((resolve) => setTimeout(resolve, pause_ms));
      }
    }
  }

  /** @param {string} key */
  stateUrl(key) {
    return `${this.urls.uploads}/${uploadIdOf(key)}`;
  }
}
