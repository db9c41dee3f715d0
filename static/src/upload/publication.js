/**
 * Asks the portal to publish, and says what its refusal means for the row.
 *
 * A request whose answer was lost may have been done. It is remembered, and repeated word by word
 * before anything else: the portal answers a repetition with the same video. What was typed since
 * is then a change of that video; sent as a request of its own it would be refused for its key.
 */

import { NoAnswer, postJson, Refused, request, requestJson } from "../api.js";
import { canRetry } from "./failures.js";
import { publishTrouble } from "./words.js";

/** Refusals that only another upload of the file can cure. */
const NEEDS_UPLOAD = new Set(["upload_not_found", "key_already_used"]);
/** Members of the request that have a field in the row. */
const FIELDS = /^\/(title|description|categoryIds|tags)(\/|$)/;

/** So often is a portal asked that has too much to do. */
const BUSY_TRIES = 6;
const LONGEST_PAUSE_S = 30;
const SPREAD_MS = 1000;

/** @typedef {import("./fields.js").Details & { fileName: string, key: string }} Publishing */
/** @typedef {{ id: string, title: string }} Published */

/** The portal did not publish. */
export class NotPublished extends Error {
  /**
   * @param {import("../api.js").FieldFault[]} faults of the row's fields
   * @param {string} words for what has no field
   * @param {boolean} needsUpload whether the file is what is at fault
   */
  constructor(faults, words, needsUpload) {
    super(words);
    this.faults = faults;
    this.words = words;
    this.needsUpload = needsUpload;
  }
}

/** One video's way to the portal, however many answers get lost. */
export class Publication {
  /** What the portal may have done. @type {Publishing | null} */
  #unanswered = null;

  /**
   * @param {string} url
   * @param {(unanswered: Publishing | null) => void} keep for another visit
   */
  constructor(url, keep) {
    this.url = url;
    this.keep = keep;
  }

  /** @param {Publishing | null} unanswered as it was kept by another visit */
  restore(unanswered) {
    this.#unanswered = unanswered;
  }

  /**
   * @param {Publishing} wanted
   * @returns {Promise<Published>}
   * @throws {NotPublished}
   */
  async publish(wanted) {
    try {
      const sent = this.#unanswered;
      const earlier = sent?.key === wanted.key ? await this.#repeat(sent) : null;
      if (sent && earlier) return await this.#correct(earlier, sent, wanted);
      return await this.#create(wanted);
    } catch (error) {
      if (error instanceof Refused) throw refused(error);
      if (error instanceof NoAnswer) throw new NotPublished([], publishTrouble(error), false);
      throw error;
    }
  }

  /**
   * @param {Publishing} sent
   * @returns {Promise<Published | null>} null when it was refused, and the next may be tried
   */
  async #repeat(sent) {
    try {
      return await post(this.url, sent);
    } catch (error) {
      if (!(error instanceof Refused) || canRetry(error)) throw error;
      return null;
    }
  }

  /** @param {Publishing} wanted @returns {Promise<Published>} */
  async #create(wanted) {
    // Before it is sent: the page may be gone before the answer comes.
    this.#remember(wanted);
    try {
      return await post(this.url, wanted);
    } catch (error) {
      if (error instanceof Refused && (!canRetry(error) || isBusy(error))) this.#remember(null);
      throw error;
    }
  }

  /**
   * Writes what was typed since, unless someone else has changed the video meanwhile: then its
   * page, which comes next, is the place to see that and to change it again.
   * @param {Published} video
   * @param {Publishing} sent what it was made with
   * @param {Publishing} wanted
   * @returns {Promise<Published>}
   */
  async #correct(video, sent, wanted) {
    const body = detailsOf(wanted);
    if (isSame(sent, body)) return video;
    const address = `${this.url}/${video.id}/metadata`;
    const { json: recorded, etag } = await request("GET", address);
    if (!isSame(recorded, sent)) return video;
    try {
      const { title } = await requestJson("PUT", address, { body, ifMatch: etag });
      return { id: video.id, title };
    } catch (error) {
      if (error instanceof Refused && error.status === 412) return video;
      throw error;
    }
  }

  /** @param {Publishing | null} unanswered */
  #remember(unanswered) {
    this.#unanswered = unanswered;
    this.keep(unanswered);
  }
}

/** @param {import("./fields.js").Details} details and more */
function detailsOf({ title, description, categoryIds, tags }) {
  return { title, description, categoryIds, tags };
}

/**
 * @param {import("./fields.js").Details} one
 * @param {import("./fields.js").Details} other
 */
function isSame(one, other) {
  return JSON.stringify(detailsOf(one)) === JSON.stringify(detailsOf(other));
}

/**
 * @param {string} url
 * @param {Publishing} body
 * @returns {Promise<Published>} with the title it has by now
 * @throws {Refused | NoAnswer}
 */
async function post(url, body) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await postJson(url, body);
    } catch (error) {
      if (!(error instanceof Refused && isBusy(error) && tries < BUSY_TRIES)) throw error;
      await pause(error);
    }
  }
}

/** @param {Refused} error */
function isBusy({ status, code }) {
  // With a part of the portal away it may take longer; then people decide when to try again.
  return status === 429 || code === "overloaded";
}

/**
 * As long as the portal asks for, and a little more: many rows publish at once.
 * @param {Refused} error
 * @returns {Promise<void>}
 */
function pause({ retryAfter_s }) {
  const pause_ms = Math.min(retryAfter_s ?? 0, LONGEST_PAUSE_S) * 1000 + Math.random() * SPREAD_MS;
  return new Promise((resolve) => setTimeout(resolve, pause_ms));
}

/** @param {Refused} error */
function refused(error) {
  const faults = error.faults.filter(({ pointer }) => FIELDS.test(pointer));
  const others = error.faults.filter((fault) => !faults.includes(fault));
  const needsUpload = NEEDS_UPLOAD.has(error.code) || others.length > 0;
  if (faults.length && !needsUpload) {
    const words = "Some details need another look; each is marked above.";
    return new NotPublished(faults, words, false);
  }
  const words = others.map(({ message }) => message).join(" ") || publishTrouble(error);
  return new NotPublished(faults, words, needsUpload);
}
