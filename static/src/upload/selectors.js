/** What follows from the state: questions about an upload, and what begins by itself. Pure. */

import { beyondQuota, contentTypeOf, unsuitable } from "../preflight/findings.js";
import { NotPublished } from "./publication.js";
import { TransferFailed } from "./retry.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {import("../requests.js").FieldFault} FieldFault */

/** A file up to the size of a part is one PUT: fewer requests, and as little to send again. */
const SINGLE_PUT_LIMIT_BYTES = 16 * 2 ** 20;
/** So many files are sent at once; the others wait in the order of their lines. */
const FILE_CONCURRENCY = 2;
const IN_FLIGHT = new Set(["waiting", "sending", "confirming", "offline"]);
const UNPUBLISHABLE = new Set(["unfinished", "cancelled", "refused"]);
const WITHOUT_FILE = new Set(["cancelled", "refused"]);
/** Details that other videos can get, too. */
const SHARED = /** @type {const} */ (["categoryIds", "tags", "visibility"]);
/** From the fewest viewers to the most. */
const VISIBILITIES = ["private", "unlisted", "public"];

/** @param {Pick<State, "uploads">} state @param {number} number @returns {Upload | undefined} */
export function uploadOf({ uploads }, number) {
  return uploads.find((upload) => upload.number === number);
}

/** @param {State} state @returns {Upload | undefined} the one whose details are shown */
export function openOf(state) {
  return uploadOf(state, state.open);
}

/** @param {Upload | undefined} upload whether its details are shown until others are asked for */
export function isWorkedOn(upload) {
  return upload?.file != null && !isGivenUp(upload);
}

/**
 * @param {State} state @param {number} number of an upload
 * @returns {Partial<Upload["details"]>} what was chosen for it that others can get, too
 */
export function sharedOf({ uploads, blank }, number) {
  const details = uploadOf({ uploads }, number)?.details ?? blank;
  const isChosen = (/** @type {(typeof SHARED)[number]} */ name) =>
    JSON.stringify(details[name]) !== JSON.stringify(blank[name]);
  return Object.fromEntries(SHARED.filter(isChosen).map((name) => [name, details[name]]));
}

/** @param {State} state @param {number} number @returns {Upload[]} that can get its details */
export function othersOf({ uploads }, number) {
  return uploads.filter((it) => it.number !== number && isUnpublished(it));
}

/** @param {State} state @param {number} number @returns {Upload[]} that more people would see then */
export function loosenedBy(state, number) {
  const reach = VISIBILITIES.indexOf(sharedOf(state, number).visibility ?? "");
  const isLess = (/** @type {Upload} */ { details }) =>
    VISIBILITIES.indexOf(details.visibility) < reach;
  return othersOf(state, number).filter(isLess);
}

/**
 * A published video needs no details any more, and the next one is shown.
 * @param {State} before
 * @param {State} after
 * @returns {number} of the one whose details are shown; 0 for none
 */
export function openAfter(before, after) {
  const open = openOf(after);
  if (open && isUnpublished(open)) return after.open;
  const at = before.uploads.findIndex(({ number }) => number === before.open);
  const next = after.uploads.slice(Math.max(at, 0)).find(isUnpublished);
  return (next ?? after.uploads.find(isUnpublished))?.number ?? 0;
}

/** Whether it is sent in one piece, of which nothing is kept. @param {{ size_bytes: number }} file */
export function isSentWhole({ size_bytes }) {
  return size_bytes <= SINGLE_PUT_LIMIT_BYTES;
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
export function isRestored({ file, id }) {
  return file === null && id !== "";
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

/** @param {Upload} upload whether removing it deletes what would not have to be sent again */
export function holdsSent(upload) {
  const isKept = upload.phase === "sent" || !isSentWhole(upload);
  return isKept && isUnpublished(upload) && !isGivenUp(upload) && upload.sent_bytes > 0;
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
  return !upload || WITHOUT_FILE.has(upload.phase);
}

/** @param {Upload} upload whether it is kept in this browser, for another visit */
export function isKept({ id, key, phase, publishing }) {
  return id !== "" && key !== "" && publishing !== "published" && !WITHOUT_FILE.has(phase);
}

/**
 * @param {State} state
 * @param {Pick<import("./state.js").Choice, "file" | "match">} choice
 * @returns {string} why it isn't even uploaded; empty when it is
 */
export function faultOf({ uploads, limits }, { file, match }) {
  const isListed = uploads.some((upload) => upload.number !== match && holds(upload, file));
  if (isListed) return `“${file.name}” is in the list already.`;
  const fault = unsuitableOf(limits, file);
  const own = uploads.find(({ number }) => number === match);
  // What continues an upload has its room already.
  if (fault || (own && isUnfinished(own))) return fault;
  return beyondQuota(
    file,
    uploads.filter((it) => it !== own),
    limits.left,
  );
}

/** @param {State["limits"]} limits @param {File} file @returns {string} why no portal takes it */
export function unsuitableOf(limits, file) {
  return unsuitable(file, contentTypeOf(file), limits.size_bytes);
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
export function faultsOf({ details }) {
  const faults = [];
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

/** Transfers start up to the limit, publications on arrival. @type {(state: State) => State} */
export function started(state) {
  let free = FILE_CONCURRENCY - state.uploads.filter(isRunning).length;
  const uploads = state.uploads.map((upload) => {
    if (upload.publishing === "wanted" && upload.phase === "sent") {
      return { ...upload, publishing: /** @type {const} */ ("publishing") };
    }
    if (upload.phase !== "waiting" || free <= 0) return upload;
    free -= 1;
    return { ...upload, phase: /** @type {const} */ ("sending") };
  });
  return { ...state, uploads };
}
