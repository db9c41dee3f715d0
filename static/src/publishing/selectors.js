/**
 * Selectors of the state and its uploads, and the rule that starts transfers and publications.
 * Pure.
 */

import { gettext } from "../messages.js";
import { quotaReason, sentTypeOf, unsuitableReason } from "../preflight/findings.js";
import { isDisconnected, NotPublished, TransferFailed } from "./failures.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {import("./upload.js").FieldFault} FieldFault */
/** @typedef {(upload: Upload) => boolean} Test */

/**
 * Size up to which a file is sent by a single PUT. It is the size of a part, so that a failure
 * repeats no more data than with parts.
 */
const SINGLE_PUT_LIMIT_BYTES = 16 * 2 ** 20;
/** Number of files that are sent at the same time; the others wait in the order of the list. */
const FILE_CONCURRENCY = 2;
const IN_FLIGHT = new Set(["waiting", "sending", "confirming"]);
const TRIMMABLE = new Set(["waiting", "sending", "paused", "failed"]);
const UNPUBLISHABLE = new Set(["unfinished", "cancelled", "refused"]);
const DISCARDED = new Set(["cancelled", "refused"]);
/** Details that can be applied to all other uploads. */
const SHARED_FIELDS = /** @type {const} */ ([
  "categoryIds",
  "tags",
  "visibility",
  "share",
  "series",
]);
/** Visibilities from the fewest people who see the video or its page to the most. */
const VISIBILITIES = ["private", "page", "members", "unlisted", "public"];

/** Return whether work is in progress, or will start without the editor. @type {Test} */
export const isInFlight = ({ phase }) => IN_FLIGHT.has(phase);

/**
 * Return whether the transfer occupies one of the connections to storage.
 * @param {Upload | undefined} upload
 */
export const isRunning = (upload) => ["sending", "confirming"].includes(upload?.phase ?? "");

/** Return whether a transfer is running without progress. @type {Test} */
export const isStalled = ({ failure, isSilent }) => isSilent || isDisconnected(failure);

/**
 * Return whether the file is sent by a single PUT, of which a failure keeps no data. What is repacked
 * is sent in parts, because its size is unknown.
 * @param {{ size_bytes: number, repackedFrom?: unknown, trim?: unknown }} file
 */
export const isSentWhole = (file) => file.size_bytes <= SINGLE_PUT_LIMIT_BYTES && !isRepacked(file);

/**
 * Return whether another file is made of the chosen one while it is sent.
 * @param {{ repackedFrom?: unknown, trim?: unknown }} upload
 */
export const isRepacked = ({ repackedFrom, trim }) => Boolean(repackedFrom || trim);

/** Return whether the part of the film to be sent can be chosen. @type {Test} */
export const canTrim = ({ file, phase, inspection, publishing }) =>
  file !== null &&
  TRIMMABLE.has(phase) &&
  Boolean(inspection?.canTrim) &&
  (publishing === "" || publishing === "requested");

/** Return whether the uploaded data is no longer needed. @param {Upload | undefined} upload */
export const isDiscarded = (upload) => !upload || DISCARDED.has(upload.phase);

/** Return whether the portal refuses to publish the uploaded file. @type {Test} */
export const isUnusable = ({ phase, failure }) =>
  phase === "failed" && failure instanceof NotPublished;

/** Return whether the upload failed without a connection. @type {Test} */
export const isCutOff = ({ phase, failure }) => phase === "failed" && isDisconnected(failure);

/**
 * Return whether the upload failed because its file can't be read, and needs it to continue.
 * @type {Test}
 */
export const lacksFile = ({ phase, failure }) =>
  phase === "failed" && failure instanceof TransferFailed && failure.code === "file_unreadable";

/** Return whether the upload was restored from an earlier visit. @type {Test} */
export const isRestored = ({ file, id }) => file === null && id !== "";

/** Return whether the upload is not published. @type {Test} */
export const isUnpublished = ({ publishing }) => publishing !== "published";

/** Return whether the upload could continue if its file is chosen again. @type {Test} */
export const isUnfinished = (upload) =>
  isUnpublished(upload) && (lacksFile(upload) || isRestored(upload));

/** Return whether there are typed details that would be lost. @type {Test} */
export const isTyped = ({ details, cleanDetails }) =>
  JSON.stringify(details) !== JSON.stringify(cleanDetails);

/** Return whether leaving the page would lose or stop something. @type {Test} */
export const holdsWork = (upload) =>
  isUnpublished(upload) && ((upload.file !== null && !isDiscarded(upload)) || isTyped(upload));

/** Return whether removing the upload deletes data that is still useful. @type {Test} */
export const holdsSent = (upload) =>
  (upload.phase === "sent" || !isSentWhole(upload)) &&
  isUnpublished(upload) &&
  !isDiscarded(upload) &&
  upload.sent_bytes > 0;

/** Return whether the upload can be published, now or later. @type {Test} */
export const isPublishable = (upload) => isUnpublished(upload) && !UNPUBLISHABLE.has(upload.phase);

/** Return whether the upload counts in the totals. @type {Test} */
export const isCounted = (upload) => isPublishable(upload) || !isUnpublished(upload);

/** Return whether the upload is saved for another visit. @type {Test} */
export const isKept = (upload) =>
  upload.id !== "" && upload.key !== "" && isUnpublished(upload) && !isDiscarded(upload);

/**
 * Return an upload by its number.
 * @param {Pick<State, "uploads">} state @param {number} number @returns {Upload | undefined}
 */
export function uploadOf({ uploads }, number) {
  return uploads.find((upload) => upload.number === number);
}

/** Return the upload whose details are open. @param {State} state */
export const openOf = (state) => uploadOf(state, state.open);

/**
 * Return the upload to open after a publication: the next one that could be published.
 * @param {State} before @param {State} after
 * @returns {number} its number; 0 for none
 */
export function openAfter(before, after) {
  const open = openOf(after);
  if (open && isUnpublished(open)) return after.open;
  // Only a newly chosen file opens by itself.
  if (!before.open && after.uploads.length <= before.uploads.length) return 0;
  const at = before.uploads.findIndex(({ number }) => number === before.open);
  /** @type {Test} */
  const isNext = (upload) => isUnpublished(upload) && !(open && isDiscarded(upload));
  const next = after.uploads.slice(Math.max(at, 0)).find(isNext);
  return (next ?? after.uploads.find(isNext))?.number ?? 0;
}

/**
 * Return the details of an upload that can be applied to others: those that differ from the
 * defaults.
 * @param {State} state @param {number} number of the upload
 * @returns {Partial<Upload["details"]>}
 */
export function sharedOf({ uploads, blank }, number) {
  const details = uploadOf({ uploads }, number)?.details ?? blank;
  const chosen = SHARED_FIELDS.filter(
    (name) => JSON.stringify(details[name]) !== JSON.stringify(blank[name]),
  );
  return Object.fromEntries(chosen.map((name) => [name, details[name]]));
}

/**
 * Return the uploads to which the details can be applied.
 * @param {State} state @param {number} number
 */
export const othersOf = ({ uploads }, number) =>
  uploads.filter((upload) => upload.number !== number && isUnpublished(upload));

/**
 * Return the uploads that more people could watch if the details of an upload were applied to them.
 * @param {State} state @param {number} number
 */
export function loosenedBy(state, number) {
  const visibilityRank = VISIBILITIES.indexOf(sharedOf(state, number).visibility ?? "");
  const rankOf = (/** @type {Upload} */ upload) => VISIBILITIES.indexOf(upload.details.visibility);
  return othersOf(state, number).filter((upload) => rankOf(upload) < visibilityRank);
}

/**
 * Return why a chosen file is not uploaded.
 * @param {State} state @param {Pick<import("./state.js").Choice, "file" | "match">} choice
 * @returns {string} empty if it is
 */
export function faultOf({ uploads, limits }, { file, match }) {
  const isListed = uploads.some((upload) => upload.number !== match && isFileOf(upload, file));
  if (isListed) return gettext("“%(name)s” is already in the list.", { name: file.name });
  const contentType = sentTypeOf(file);
  const fault = unsuitableReason(file, contentType, limits.size_bytes, true);
  const target = uploads.find(({ number }) => number === match);
  // The quota already counts an upload that continues.
  if (fault || (target && isUnfinished(target))) return fault;
  // The remaining quota on the page already counts uploads of earlier visits.
  const isNew = (/** @type {Upload} */ upload) => upload.file && upload.arrived_bytes === null;
  const others = uploads.filter(
    (upload) => upload !== target && isNew(upload) && !isDiscarded(upload),
  );
  return quotaReason(file, others, limits.left);
}

/** Return whether an upload sends this file. @param {Upload} upload @param {File} file */
function isFileOf(upload, file) {
  const sent = upload.file;
  if (!sent || !isUnpublished(upload) || lacksFile(upload)) return false;
  return (
    sent.name === file.name && sent.size === file.size && sent.lastModified === file.lastModified
  );
}

/**
 * Return the faults that are known before the portal validates the details.
 * @param {Upload} upload
 */
export function faultsOf({ details }) {
  const title = { pointer: "/title", message: gettext("Give the video a title.") };
  const category = {
    pointer: "/categoryIds",
    message: gettext("Choose at least one category."),
  };
  return [
    ...(details.title.trim() ? [] : [title]),
    ...(details.categoryIds.length ? [] : [category]),
  ];
}

/**
 * Return the faults of all fields but one.
 * @param {FieldFault[]} faults @param {string} pointer of the field @returns {FieldFault[]}
 */
export function without(faults, pointer) {
  return faults.filter(
    (fault) => fault.pointer !== pointer && !fault.pointer.startsWith(`${pointer}/`),
  );
}

/**
 * Start transfers up to the limit, and publications of complete uploads.
 * @type {(state: State) => State}
 */
export function started(state) {
  let free = FILE_CONCURRENCY - state.uploads.filter(isRunning).length;
  const uploads = state.uploads.map((upload) => {
    if (upload.publishing === "requested" && upload.phase === "sent") {
      return { ...upload, publishing: /** @type {const} */ ("publishing") };
    }
    if (upload.phase !== "waiting" || free <= 0) return upload;
    free -= 1;
    return { ...upload, phase: /** @type {const} */ ("sending") };
  });
  return { ...state, uploads };
}
