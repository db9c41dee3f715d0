/** Client of the JSON API for the upload page. Media bytes go directly to storage. */

import { request, requestJson } from "../people/session.js";

/** Storage may take long to assemble thousands of parts. */
const COMPLETE_TIMEOUT_MS = 90_000;
/** Pattern of a storage key, with the upload's id. */
const KEY = /^videos\/([0-9a-f]{32})\./;

/**
 * @typedef {{ presignUrl: string, uploadsUrl: string, publishUrl: string, seriesUrl?: string }} Urls
 *   `seriesUrl`, with the placeholder SERIES_ID, is missing on portals without series
 * @typedef {{ partNumber: number, sizeBytes: number, etag: string }} Part
 * @typedef {{ state: "pending" | "uploading" | "stored", sizeBytes: number, partSizeBytes: number,
 *   partCount: number, isGrowing?: boolean, parts: Part[] }} UploadState with the parts that storage
 *   has; `sizeBytes` and `partCount` of a growing upload are null
 * @typedef {"metadata" | "access"} Resource of a video
 */

/**
 * Return a choice of the visibility as the API takes it: members and a public page belong to a
 * private video.
 * @param {string} choice
 */
export function audienceOf(choice) {
  const signedInOnly = choice === "members";
  const hasPublicPage = choice === "page";
  const visibility = signedInOnly || hasPublicPage ? "private" : choice;
  return { visibility, signedInOnly, hasPublicPage };
}

/** Return the names in a text, which are divided by commas. @param {string} text */
export function namesOf(text) {
  const names = text.split(/[,;\n]/).map((name) => name.trim());
  return names.filter((name) => name);
}

/** @param {string} url @param {number} [size_bytes] */
const withSize = (url, size_bytes) => (size_bytes ? `${url}?sizeBytes=${size_bytes}` : url);

export class Api {
  /** @param {Urls} urls */
  constructor(urls) {
    this.urls = urls;
  }

  /**
   * Request a new key, and a URL for one PUT of the whole file.
   * @param {{ name: string, contentType: string }} file @param {AbortSignal} signal
   * @returns {Promise<{ key: string, uploadUrl: string }>}
   */
  presign({ name, contentType }, signal) {
    const body = { fileName: name, contentType };
    return requestJson("POST", this.urls.presignUrl, { body, signal });
  }

  /**
   * Start an upload in parts, or return its state. The request can't be aborted, because an upload
   * that starts after its cancellation would never be removed.
   * @param {string} key @param {number | null} sizeBytes null if it is unknown
   * @returns {Promise<UploadState>}
   */
  begin(key, sizeBytes) {
    return requestJson("POST", this.urls.uploadsUrl, { body: { key, sizeBytes } });
  }

  /**
   * Return the state of an upload.
   * @param {string} key @param {AbortSignal} [signal] @returns {Promise<UploadState>}
   */
  read(key, signal) {
    return requestJson("GET", this.#uploadUrl(key), { signal });
  }

  /**
   * Return a URL for one PUT of a part.
   * @param {string} key @param {number} number @param {AbortSignal} signal
   * @param {number} [size_bytes] size of a growing upload's part
   * @returns {Promise<string>}
   */
  async signPart(key, number, signal, size_bytes) {
    const url = withSize(`${this.#uploadUrl(key)}/parts/${number}`, size_bytes);
    return (await requestJson("POST", url, { signal })).uploadUrl;
  }

  /**
   * Assemble the parts.
   * @param {string} key @param {AbortSignal} signal
   * @param {number} [size_bytes] size of a growing upload @returns {Promise<UploadState>}
   */
  complete(key, signal, size_bytes) {
    const url = withSize(`${this.#uploadUrl(key)}/complete`, size_bytes);
    return requestJson("POST", url, { signal, timeout_ms: COMPLETE_TIMEOUT_MS });
  }

  /** Delete the uploaded data. @param {string} key */
  remove(key) {
    return requestJson("DELETE", this.#uploadUrl(key), { keepalive: true });
  }

  /**
   * Create the video of an uploaded file, or return the one that an earlier request created.
   * @param {{ visibility?: string, share?: string, series?: string }} details metadata, file,
   *   audience, and a series, which is not sent
   * @returns {Promise<{ id: string, title: string }>} with its present title
   */
  publish({ visibility = "", share = "", series: _, ...body }) {
    const query = new URLSearchParams();
    const audience = audienceOf(visibility);
    if (visibility) query.set("visibility", audience.visibility);
    if (audience.signedInOnly) query.set("signedInOnly", "true");
    if (audience.hasPublicPage) query.set("hasPublicPage", "true");
    for (const name of namesOf(share)) query.append("share", name);
    const url = [this.urls.publishUrl, query].filter(String).join("?");
    return requestJson("POST", url, { body });
  }

  /** Add a video to a series, unless it is in it. @param {string} seriesId @param {string} videoId */
  addToSeries(seriesId, videoId) {
    const url = this.urls.seriesUrl?.replace("SERIES_ID", seriesId) ?? "";
    return requestJson("POST", url, { body: { videoIds: [videoId] } });
  }

  /**
   * Return a resource of a video, and its ETag.
   * @param {string} videoId @param {Resource} resource
   */
  readResource(videoId, resource) {
    return request("GET", `${this.urls.publishUrl}/${videoId}/${resource}`);
  }

  /**
   * Change who may watch a video.
   * @param {string} videoId @param {unknown} body @param {string} ifMatch ETag that was read
   */
  changeAccess(videoId, body, ifMatch) {
    return requestJson("PUT", `${this.urls.publishUrl}/${videoId}/access`, { body, ifMatch });
  }

  /**
   * Change some metadata of a video, and return all.
   * @param {string} videoId @param {unknown} body @param {string} ifMatch ETag that was read
   */
  changeMetadata(videoId, body, ifMatch) {
    return requestJson("PATCH", `${this.urls.publishUrl}/${videoId}`, { body, ifMatch });
  }

  /** @param {string} key */
  #uploadUrl(key) {
    return `${this.urls.uploadsUrl}/${KEY.exec(key)?.[1]}`;
  }
}
