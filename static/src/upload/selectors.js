/** What follows from the state: questions about an upload, its speed, the progress of all. Pure. */

import { beyondQuota, contentTypeOf, unsuitable } from "./findings.js";
import { NotPublished } from "./publication.js";
import { TransferFailed } from "./retry.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {import("../requests.js").FieldFault} FieldFault */

/** So many files are sent at once; the others wait in the order of their rows. */
const FILE_CONCURRENCY = 2;
const IN_FLIGHT = new Set(["waiting", "sending", "confirming", "offline"]);
const UNPUBLISHABLE = new Set(["empty", "unfinished", "cancelled", "refused"]);
const WITHOUT_FILE = new Set(["cancelled", "refused"]);

/** @param {State} state @param {number} number @returns {Upload | undefined} */
export function uploadOf({ uploads }, number) {
  return uploads.find((upload) => upload.number === number);
}

/** @param {Upload} upload whether something is being done, or will be without the editor */
export function isInFlight({ phase }) {
  return IN_FLIGHT.has(phase);
}

/** @param {Upload} upload whether its transfer takes one of the places at storage */
export function isRunning({ phase }) {
  return phase === "sending" || phase === "confirming";
}

/** @param {Upload} upload whether what was sent turned out to be of no use for publishing */
export function isLost({ phase, failure }) {
  return phase === "failed" && failure instanceof NotPublished;
}

/** @param {Upload} upload whether it failed for a file that may come back, or be chosen again */
export function lacksFile({ phase, failure }) {
  return (
    phase === "failed" && failure instanceof TransferFailed && failure.code === "file_unreadable"
  );
}

/** @param {Upload} upload whether all of it is from an earlier visit */
export function isRestored({ file, phase }) {
  return file === null && phase !== "empty";
}

/** @param {Upload} upload whether it would go on if its file was chosen again */
export function isUnfinished(upload) {
  return isUnpublished(upload) && (lacksFile(upload) || isRestored(upload));
}

/** @param {Upload} upload whether something was typed that nobody else would put back */
export function isTyped({ details, cleanDetails }) {
  return JSON.stringify(details) !== JSON.stringify(cleanDetails);
}

/** @param {Upload} upload */
export function isUnpublished({ publishing }) {
  return publishing !== "published";
}

/** @param {Upload} upload whether leaving the page would lose something, or stop it */
export function holdsWork(upload) {
  const holdsFile = upload.file !== null && !WITHOUT_FILE.has(upload.phase);
  return isUnpublished(upload) && (holdsFile || isTyped(upload));
}

/** @param {Upload} upload whether it can be published, now or later */
export function isPublishable(upload) {
  return isUnpublished(upload) && !UNPUBLISHABLE.has(upload.phase);
}

/** @param {Upload} upload whether it takes part in what is said of all */
export function isCounted(upload) {
  return isPublishable(upload) || !isUnpublished(upload);
}

/** @param {Upload | undefined} upload whether what was sent of it is no longer wanted */
export function isGivenUp(upload) {
  return !upload || upload.phase === "empty" || WITHOUT_FILE.has(upload.phase);
}

/** @param {Upload} upload whether it is kept in this browser, for another visit */
export function isKept({ id, key, phase, publishing }) {
  return id !== "" && key !== "" && publishing !== "published" && !WITHOUT_FILE.has(phase);
}

/**
 * @param {State} state
 * @param {number} number
 * @returns {boolean} whether no other file shares the page with it
 */
export function isAlone({ uploads }, number) {
  return uploads.every(
    (it) => it.number === number || it.phase === "unfinished" || it.phase === "empty",
  );
}

/**
 * @param {State} state
 * @param {Pick<import("./state.js").Choice, "file" | "match">} choice
 * @returns {string} why it isn't even uploaded; empty when it is
 */
export function faultOf({ uploads, limits }, { file, match }) {
  const isListed = uploads.some((upload) => holds(upload, file));
  if (isListed) return `“${file.name}” is in the list already.`;
  const fault = unsuitable(file, contentTypeOf(file), limits.size_bytes);
  // What continues an upload has its room already.
  return fault || (match === null ? beyondQuota(file, uploads, limits.left) : "");
}

/** @param {Upload} upload @param {File} file */
function holds(upload, file) {
  const own = upload.file;
  if (!own || upload.publishing === "published" || lacksFile(upload)) return false;
  return own.name === file.name && own.size === file.size && own.lastModified === file.lastModified;
}

/**
 * What can be said at once, without asking the portal, whose word is final.
 * @param {Upload} upload
 */
export function faultsOf({ phase, details }) {
  const faults = [];
  if (phase === "unfinished") {
    faults.push({ pointer: "/file", message: "Choose the file again to go on." });
  }
  if (!details.title.trim()) {
    faults.push({ pointer: "/title", message: "Give the video a title." });
  }
  if (!details.categoryIds.length) {
    faults.push({ pointer: "/categoryIds", message: "Choose at least one category." });
  }
  return faults;
}

/**
 * @param {FieldFault[]} faults
 * @param {string} pointer
 * @returns {FieldFault[]} those of other fields
 */
export function without(faults, pointer) {
  return faults.filter((it) => it.pointer !== pointer && !it.pointer.startsWith(`${pointer}/`));
}

const RATE_MEMORY_S = 4;
const RATE_STEP_S = 0.2;

/**
 * Speed is an average that forgets slowly, so that neither it nor the time left jumps with each
 * burst.
 * @typedef {{ speed_bps: number | null, sent_bytes: number, at_ms: number | null }} Rate
 */

/** Nothing was measured yet. @type {Rate} */
export const NO_RATE = { speed_bps: null, sent_bytes: 0, at_ms: null };

/**
 * @param {Rate} rate
 * @param {number} sent_bytes altogether
 * @param {number} now_ms
 * @returns {Rate} with a speed once two measurements are far enough apart
 */
export function measured(rate, sent_bytes, now_ms) {
  if (rate.at_ms === null) return { speed_bps: null, sent_bytes, at_ms: now_ms };
  const elapsed_s = (now_ms - rate.at_ms) / 1000;
  if (elapsed_s < RATE_STEP_S) return rate;
  const current_bps = Math.max(0, sent_bytes - rate.sent_bytes) / elapsed_s;
  const before_bps = rate.speed_bps ?? current_bps;
  const weight = 1 - Math.exp(-elapsed_s / RATE_MEMORY_S);
  const speed_bps = before_bps + weight * (current_bps - before_bps);
  return { speed_bps, sent_bytes, at_ms: now_ms };
}

/**
 * The share of all bytes that was sent never goes down: when files join or leave, it stays, and the
 * rest of the way is divided anew from there.
 * @typedef {object} Overall
 * @property {number} share from 0 to 1, and 1 only when everything is sent
 * @property {number} count of files
 * @property {number} sent_bytes
 * @property {number} total_bytes
 * @property {{ share: number, sent_bytes: number }} base where the present division began
 * @property {Rate} rate
 */

/** @type {Overall} */
export const NO_PROGRESS = {
  share: 0,
  count: 0,
  sent_bytes: 0,
  total_bytes: 0,
  base: { share: 0, sent_bytes: 0 },
  rate: NO_RATE,
};

/**
 * @param {Overall} before
 * @param {Upload[]} uploads
 * @param {number | null} now_ms null where no bytes were reported
 * @returns {Overall}
 */
export function overallOf(before, uploads, now_ms) {
  const counted = uploads.filter((upload) => upload.file && isCounted(upload));
  const sent_bytes = counted.reduce((sum, upload) => sum + upload.sent_bytes, 0);
  const total_bytes = counted.reduce((sum, upload) => sum + upload.size_bytes, 0);
  let { share, base, rate } = before;
  if (total_bytes !== before.total_bytes) {
    // After all was sent, or nothing is left, a new round begins.
    if (share >= 1 || total_bytes === 0) share = total_bytes > 0 ? sent_bytes / total_bytes : 0;
    base = { share, sent_bytes };
  }
  const left_bytes = total_bytes - base.sent_bytes;
  const done = left_bytes > 0 ? Math.max(0, sent_bytes - base.sent_bytes) / left_bytes : 0;
  share = Math.max(share, base.share + (1 - base.share) * done);
  if (total_bytes > 0 && sent_bytes >= total_bytes) share = 1;
  if (!counted.some(isInFlight)) rate = NO_RATE;
  else if (now_ms !== null) rate = measured(rate, sent_bytes, now_ms);
  return { share, count: counted.length, sent_bytes, total_bytes, base, rate };
}

/** Transfers start up to the limit, publications on arrival. @type {(state: State) => State} */
export function started(state) {
  let free = FILE_CONCURRENCY - state.uploads.filter(isRunning).length;
  const uploads = state.uploads.map((upload) => {
    if (upload.publishing === "wanted" && upload.phase === "sent") {
      return { ...upload, publishing: /** @type {const} */ ("publishing") };
    }
    if (upload.phase !== "waiting" || free <= 0) return upload;
    free -= 1;
    return { ...upload, phase: /** @type {const} */ ("sending"), rate: NO_RATE };
  });
  return { ...state, uploads };
}
