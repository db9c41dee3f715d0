/** Asks the portal to publish, and says what its refusal means for the row. */

import { NoAnswer, postJson, Refused } from "../api.js";
import { publishTrouble } from "./words.js";

/** Refusals that only another upload of the file can cure. */
const NEEDS_UPLOAD = new Set(["upload_not_found", "key_already_used"]);
/** Members of the request that have a field in the row. */
const FIELDS = /^\/(title|description|categoryIds|tags)(\/|$)/;

/** So often is a portal asked that has too much to do. */
const BUSY_TRIES = 6;
const LONGEST_PAUSE_S = 30;
const SPREAD_MS = 1000;

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

/**
 * @param {string} url
 * @param {import("./fields.js").Details & { fileName: string, key: string }} request
 * @returns {Promise<string>} the video's id
 * @throws {NotPublished}
 */
export async function publish(url, request) {
  for (let tries = 1; ; tries += 1) {
    try {
      return (await postJson(url, request)).id;
    } catch (error) {
      if (error instanceof Refused && isBusy(error) && tries < BUSY_TRIES) {
        await pause(error);
        continue;
      }
      if (error instanceof Refused) throw refused(error);
      if (error instanceof NoAnswer) throw new NotPublished([], publishTrouble(error), false);
      throw error;
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
