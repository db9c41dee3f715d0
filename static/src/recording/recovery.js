/** Recordings that earlier visits have not finished, by their files and what was saved of them. */

import {
  fileNameOf,
  removeRecording,
  savedRecordings,
  waitForRelease,
} from "./saved-recordings.js";
import { removeSpooled, spooledFiles } from "./spool.js";

/** @typedef {import("./saved-recordings.js").Saved} Saved */
/** @typedef {{ saved: Saved, file: File }} Unfinished */

/**
 * Report each recording that no page holds, also those of other pages when these close. Files of
 * recordings that the portal has are removed.
 * @param {(unfinished: Unfinished) => void} report @param {AbortSignal} signal
 */
export async function findUnfinished(report, signal) {
  const known = savedRecordings();
  const files = await spooledFiles().catch(() => []);
  for (const { name } of files) {
    const id = name.replace(/\.mp4$/, "");
    waitForRelease(id, signal).then((isFree) => (isFree ? look(id, report) : undefined));
  }
  for (const { id } of known) {
    if (!files.some(({ name }) => name === fileNameOf(id))) removeRecording(id);
  }
}

/**
 * Look at a recording that no page holds any more.
 * @param {string} id @param {(unfinished: Unfinished) => void} report
 */
async function look(id, report) {
  const file = (await spooledFiles()).find(({ name }) => name === fileNameOf(id));
  if (!file) return;
  const saved = savedRecordings().find((saved) => saved.id === id) ?? unknown(id, file);
  if (!saved.isSafe && file.size) return report({ saved, file });
  await removeSpooled(file.name);
  removeRecording(id);
}

/**
 * Return what is known of a recording whose entry the browser lost.
 * @param {string} id @param {File} file @returns {Saved}
 */
function unknown(id, { name, lastModified: started_at }) {
  return { id, name, key: "", started_at, duration_s: 0, request: null, isSafe: false };
}
