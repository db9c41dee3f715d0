/** Asks the portal to publish, and says what its refusal means for the row. */

import { NoAnswer, postJson, Refused } from "../api.js";
import { publishTrouble } from "./words.js";

/** Refusals that only another upload of the file can cure. */
const NEEDS_UPLOAD = new Set(["upload_not_found", "key_already_used"]);
/** Members of the request that have a field in the row. */
const FIELDS = /^\/(title|description|categoryIds|tags)(\/|$)/;

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
  try {
    return (await postJson(url, request)).id;
  } catch (error) {
    if (error instanceof Refused) throw refused(error);
    if (error instanceof NoAnswer) throw new NotPublished([], publishTrouble(error), false);
    throw error;
  }
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
