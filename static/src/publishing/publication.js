/**
 * Publication of an upload, also after a request without a response, and its refusals.
 *
 * A request without a response may have succeeded. It is saved, and sent again unchanged before any
 * other: the portal returns the same video for a repeated request, but refuses a different request
 * with the same key. Later changes are then made to that video. Only the audience is sent as it is
 * now, so that the video is never visible to more people than chosen.
 */

import { gettext } from "../messages.js";
import { ACCOUNT_CHANGED, AccountChanged } from "../people/sign-in-again.js";
import { isSignedOut, NoResponse, Refused, SIGNED_OUT } from "../requests.js";
import { retry } from "../retry.js";
import { audienceOf, namesOf } from "./api.js";
import { canRetryTransfer, describeQuotaError, NotPublished } from "./failures.js";

/** Refusals that need another upload of the file. */
const NEEDS_UPLOAD = new Set(["upload_not_found", "key_already_used", "storage_quota_exceeded"]);
/** Members of the request that have a field in the form. */
const FIELDS = /^\/(title|description|categoryIds|tags|visibility|share|series)(\/|$)/;
/** Faults of the names in a change of the audience, which have one field in the form. */
const SHARES = /^\/shares(\/.*)?$/;
/** Faults of a video that can't be added to a series. */
const SERIES = /^\/videoIds(\/.*)?$/;
const UNREACHABLE = gettext(
  "The portal can’t be reached. Check your connection and publish again; your upload is safe.",
);

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./upload.js").Details} Details */
/** @typedef {Omit<Details, "visibility" | "share" | "series">} Metadata */
/** @typedef {Details & { fileName: string, key: string }} Request */
/** @typedef {{ id: string, title: string }} Video */

/**
 * Publish an upload: create its video, or update the video of an earlier request; then add it to
 * the series.
 * @param {Api} api @param {Request} request
 * @param {Request | null} pendingRequest earlier request without a response
 * @param {(pendingRequest: Request | null) => void} remember saves it for this visit and later ones
 * @returns {Promise<Video>} @throws {NotPublished}
 */
export async function publish(api, request, pendingRequest, remember) {
  return explainFailure(async () => {
    const video = await createOrUpdate(api, request, pendingRequest, remember);
    if (request.series) await api.addToSeries(request.series, video.id);
    return video;
  });
}

/**
 * Run a step of the publication, and explain its failure in terms of the form.
 * @template T @param {() => Promise<T>} step @returns {Promise<T>} @throws {NotPublished}
 */
export async function explainFailure(step) {
  try {
    return await step();
  } catch (error) {
    if (isSignedOut(error)) throw new NotPublished([], SIGNED_OUT, false);
    if (error instanceof AccountChanged) throw new NotPublished([], ACCOUNT_CHANGED, false);
    if (error instanceof Refused) throw toNotPublished(error);
    if (error instanceof NoResponse) throw new NotPublished([], UNREACHABLE, false);
    throw error;
  }
}

/**
 * Create the video of an upload, or update the video of an earlier request.
 * @param {Api} api @param {Request} request @param {Request | null} pendingRequest
 * @param {(pendingRequest: Request | null) => void} remember @returns {Promise<Video>}
 */
async function createOrUpdate(api, request, pendingRequest, remember) {
  if (pendingRequest?.key === request.key) {
    const earlierVideo = await repeatRequest(api, pendingRequest, request, remember);
    if (earlierVideo) return await updateVideo(api, earlierVideo, pendingRequest, request);
  }
  return await sendFirst(api, request, remember);
}

/**
 * Repeat a request without a response, with the present audience.
 * @param {Api} api @param {Request} pendingRequest @param {Request} request the present one
 * @param {(pendingRequest: Request) => void} remember
 * @returns {Promise<Video | null>} null after a refusal: the video doesn't exist
 * @throws {Refused | NoResponse} if it is still unknown whether the video exists
 */
async function repeatRequest(api, pendingRequest, request, remember) {
  const { visibility, share } = request;
  // Until there is a response, the video may have either audience.
  if (!hasAudience(pendingRequest, request)) remember({ ...pendingRequest, visibility: "" });
  try {
    return await sendWhileBusy(api, { ...pendingRequest, visibility, share });
  } catch (error) {
    if (!(error instanceof Refused) || canRetryTransfer(error) || isSignedOut(error)) throw error;
    // This code means that the first request had succeeded.
    return error.code === "visibility_differs" ? error.present : null;
  }
}

/**
 * Send the first request to publish.
 * @param {Api} api @param {Request} request
 * @param {(pendingRequest: Request | null) => void} remember @returns {Promise<Video>}
 */
async function sendFirst(api, request, remember) {
  // Saved before sending, because the page may close before the response.
  remember(request);
  try {
    return await sendWhileBusy(api, request);
  } catch (error) {
    const isRefused = error instanceof Refused && (!canRetryTransfer(error) || isBusy(error));
    if (isRefused || error instanceof AccountChanged) remember(null);
    throw error;
  }
}

/**
 * Change a video that an earlier request created.
 * @param {Api} api @param {Video} video @param {Request} created the earlier request
 * @param {Request} request the present one @returns {Promise<Video>}
 */
async function updateVideo(api, video, created, request) {
  if (!hasAudience(created, request)) {
    const { json: access, etag } = await api.readResource(video.id, "access");
    const shares = namesOf(request.share).map((name) => ({ name, right: "watch" }));
    const changed = { ...access, ...audienceOf(request.visibility), shares };
    await api.changeAccess(video.id, changed, etag);
  }
  if (isSame(created, request)) return video;
  const { etag } = await api.readResource(video.id, "metadata");
  const { title } = await api.changeMetadata(video.id, metadataOf(request), etag);
  return { id: video.id, title };
}

/**
 * Return whether a request has the audience of another one.
 * @param {Request} request @param {Request} other
 */
function hasAudience(request, other) {
  return request.visibility === other.visibility && request.share === other.share;
}

/** Return the metadata of a request, which excludes the audience. @param {Metadata} request */
function metadataOf({ title, description, categoryIds, tags }) {
  return { title, description, categoryIds, tags };
}

/**
 * Return whether two requests have the same metadata.
 * @param {Metadata} details @param {Metadata} other
 */
function isSame(details, other) {
  return JSON.stringify(metadataOf(details)) === JSON.stringify(metadataOf(other));
}

/** Send a request, again while the portal is busy. @param {Api} api @param {Request} request */
function sendWhileBusy(api, request) {
  return retry(() => api.publish(request), { shouldRetry: isBusy });
}

/** Return whether the portal asks for another attempt. @param {unknown} error */
function isBusy(error) {
  // An outage may last longer, so the person decides when to try again.
  return error instanceof Refused && (error.status === 429 || error.code === "overloaded");
}

/** Return the refusal in terms of the form. @param {Refused} error */
function toNotPublished(error) {
  const named = error.faults.map(({ pointer, message }) => {
    return { pointer: pointer.replace(SHARES, "/share").replace(SERIES, "/series"), message };
  });
  const faults = named.filter(({ pointer }) => FIELDS.test(pointer));
  const others = named.filter((fault) => !faults.includes(fault));
  const needsUpload = NEEDS_UPLOAD.has(error.code) || others.length > 0;
  if (faults.length && !needsUpload) {
    const message = gettext("Some details need your attention. They’re marked above.");
    return new NotPublished(faults, message, false);
  }
  const reasons = others.map(({ message }) => message).join(" ");
  const message = describeQuotaError(error)?.[1] || reasons || error.detail;
  const { status } = error;
  const fallback = gettext("The portal responded with status %(status)s. Try again.", { status });
  return new NotPublished(faults, message || fallback, needsUpload);
}
