/**
 * Publishes an upload, also after a request without a response, and translates refusals.
 *
 * A request without a response may have succeeded. It is saved and sent again unchanged before
 * anything else: the portal returns the same video for a repetition, but would refuse a new request
 * with the same key. Later changes are then written to that video. Only the visibility is sent in its present
 * form, so that the video is never visible to more people than chosen.
 */

import { SOMEONE_ELSE, SomeoneElse } from "../accounts/sign-in-again.js";
import { isSignedOut, NoAnswer, Refused, SIGNED_OUT } from "../requests.js";
import { canRetry, NotPublished, quotaTrouble, retrying } from "./failures.js";

/** Refusals that need another upload of the file. */
const NEEDS_UPLOAD = new Set(["upload_not_found", "key_already_used", "storage_quota_exceeded"]);
/** Members of the request that have a field in the form. */
const FIELDS = /^\/(title|description|categoryIds|tags|visibility)(\/|$)/;
const UNREACHABLE =
  "The portal can’t be reached. Check your connection and publish again; your upload is safe.";

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./upload.js").Details} Details */
/** @typedef {Omit<Details, "visibility">} Metadata */
/** @typedef {Details & { fileName: string, key: string }} Request */
/** @typedef {{ id: string, title: string }} Video */

/**
 * @param {Api} api @param {Request} wanted
 * @param {Request | null} unanswered the last request, when its answer was lost
 * @param {(unanswered: Request | null) => void} remember for this visit and others
 * @returns {Promise<Video>} @throws {NotPublished}
 */
export async function publish(api, wanted, unanswered, remember) {
  try {
    if (unanswered?.key === wanted.key) {
      const earlier = await repeat(api, unanswered, wanted, remember);
      if (earlier) return await correct(api, earlier, unanswered, wanted);
    }
    return await create(api, wanted, remember);
  } catch (error) {
    if (isSignedOut(error)) throw new NotPublished([], SIGNED_OUT, false);
    if (error instanceof SomeoneElse) throw new NotPublished([], SOMEONE_ELSE, false);
    if (error instanceof Refused) throw notPublished(error);
    if (error instanceof NoAnswer) throw new NotPublished([], UNREACHABLE, false);
    throw error;
  }
}

/**
 * @param {Api} api @param {Request} unanswered @param {Request} wanted
 * @param {(unanswered: Request) => void} remember
 * @returns {Promise<Video | null>} null when it was refused, and the next may be tried
 * @throws {Refused | NoAnswer} when it can still not be told whether it was done
 */
async function repeat(api, unanswered, { visibility }, remember) {
  // It is unknown until a response which of both counts.
  if (visibility !== unanswered.visibility) remember({ ...unanswered, visibility: "" });
  try {
    return await post(api, { ...unanswered, visibility });
  } catch (error) {
    if (!(error instanceof Refused) || canRetry(error) || isSignedOut(error)) throw error;
    // The lost response was a success.
    return error.code === "visibility_differs" ? error.present : null;
  }
}

/** @type {(api: Api, wanted: Request, remember: (it: Request | null) => void) => Promise<Video>} */
async function create(api, wanted, remember) {
  // Saved before sending, because the page may close before the response.
  remember(wanted);
  try {
    return await post(api, wanted);
  } catch (error) {
    const isUndone = error instanceof Refused && (!canRetry(error) || isBusy(error));
    if (isUndone || error instanceof SomeoneElse) remember(null);
    throw error;
  }
}

/**
 * Send the changes since the first request.
 * @param {Api} api @param {Video} video
 * @param {Request} sent what it was made with @param {Request} wanted @returns {Promise<Video>}
 */
async function correct(api, video, sent, wanted) {
  const { visibility } = wanted;
  if (sent.visibility !== visibility) {
    const { json: recorded, etag } = await api.readOf(video.id, "access");
    await api.writeOf(video.id, "access", { ...recorded, visibility, signedInOnly: false }, etag);
  }
  if (isSame(sent, wanted)) return video;
  const { etag } = await api.readOf(video.id, "metadata");
  const { title } = await api.writeOf(video.id, "metadata", metadataOf(wanted), etag);
  return { id: video.id, title };
}

/** @param {Metadata} details and more, without who may see it, which is no part of the metadata */
function metadataOf({ title, description, categoryIds, tags }) {
  return { title, description, categoryIds, tags };
}

/** @param {Metadata} one @param {Metadata} other */
function isSame(one, other) {
  return JSON.stringify(metadataOf(one)) === JSON.stringify(metadataOf(other));
}

/** @param {Api} api @param {Request} request */
function post(api, request) {
  return retrying(() => api.publish(request), { isWorthIt: isBusy });
}

/** @param {unknown} error */
function isBusy(error) {
  // This may take longer during an outage; then the person decides when to try again.
  return error instanceof Refused && (error.status === 429 || error.code === "overloaded");
}

/** @param {Refused} error */
function notPublished(error) {
  const faults = error.faults.filter(({ pointer }) => FIELDS.test(pointer));
  const others = error.faults.filter((fault) => !faults.includes(fault));
  const needsUpload = NEEDS_UPLOAD.has(error.code) || others.length > 0;
  if (faults.length && !needsUpload) {
    const words = "Some details need your attention. They’re marked above.";
    return new NotPublished(faults, words, false);
  }
  const reasons = others.map(({ message }) => message).join(" ");
  const words = quotaTrouble(error)?.[1] || reasons || error.detail;
  const unnamed = `The portal responded with status ${error.status}. Try again.`;
  return new NotPublished(faults, words || unnamed, needsUpload);
}
