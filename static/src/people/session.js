/** Requests to the portal's JSON API, which ask the person to sign in when the session has ended. */

import { isSignedOut, Refused, send } from "../requests.js";
import {
  AccountChanged,
  countSignIns,
  hasAccountChanged,
  requireSameAccount,
  waitForSignIn,
} from "./sign-in-again.js";

/** @typedef {import("../requests.js").Options} Options */

/** Return whether the person has to sign in again with the same account. @param {unknown} error */
export function needsSignIn(error) {
  return isSignedOut(error) || error instanceof AccountChanged;
}

/**
 * Send a request, and return the JSON of the response.
 * @param {string} method @param {string} url @param {Options} [options]
 * @returns {Promise<any>} null if the response has no body
 * @throws {Refused | NoResponse | AccountChanged} or the signal's reason
 */
export async function requestJson(method, url, options) {
  return (await request(method, url, options)).json;
}

/**
 * Send a request. If the session has ended, ask the person to sign in and send it again, unless the
 * request outlives the page.
 * @param {string} method @param {string} url @param {Options} [options]
 * @returns {Promise<{ json: any, etag: string }>}
 * @throws {Refused | NoResponse | AccountChanged} or the signal's reason
 */
export async function request(method, url, options = {}) {
  for (;;) {
    requireSameAccount();
    const signInsBefore = countSignIns();
    try {
      return await send(method, url, readJson, { accept: "application/json", ...options });
    } catch (error) {
      if (options.keepalive) throw error;
      // The portal hides an upload from other accounts.
      if (isUnknownUpload(error) && (await hasAccountChanged())) throw new AccountChanged();
      if (!isSignedOut(error)) throw error;
      if (!(await waitForSignIn(signInsBefore))) throw error;
    }
  }
}

/** @param {Response} response */
async function readJson(response) {
  const json = response.status === 204 ? null : await response.json();
  return { json, etag: response.headers.get("ETag") ?? "" };
}

/** Return whether the portal doesn't know the upload. @param {unknown} error */
function isUnknownUpload(error) {
  if (!(error instanceof Refused)) return false;
  const isKeyAtFault = error.faults.some(({ pointer }) => pointer === "/key");
  return isKeyAtFault || error.code === "upload_not_issued";
}
