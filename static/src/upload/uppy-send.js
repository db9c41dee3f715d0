/**
 * Sends one Blob to storage with Uppy's S3 uploader, which has the XMLHttpRequest, its progress,
 * its quick retries and the cutting into chunks. Nothing here decides what to do after a failure.
 */

import AwsS3 from "@uppy/aws-s3";
import Uppy from "@uppy/core";
import { TransferFailed } from "./failures.js";
import { Watchdog } from "./watchdog.js";

/**
 * @typedef {object} Sending
 * @property {Blob} data
 * @property {string} contentType
 * @property {{ chunk_bytes: number, stateUrl: string } | null} chunks null for one PUT of it all
 * @property {(chunk: number) => Promise<string>} sign address to PUT this chunk to (from 1)
 * @property {(sent_bytes: number) => void} onProgress may go down, when Uppy tries again
 * @property {(chunk: number, etag: string) => void} onChunk storage has taken it
 * @property {AbortSignal} signal rejects with its reason
 */

/** Uppy ends a multipart upload by completing it, and the portal does that: here Uppy stops. */
class ChunksSent extends Error {}

const SILENT = { debug() {}, warn() {}, error() {} };

/**
 * Uppy creates a multipart upload unless it continues one, and the portal has created it. What it
 * lists for continuing is read as XML; the portal's JSON has no elements, so nothing is skipped.
 */
const CONTINUED = { s3Multipart: { uploadId: "begun", key: "begun" } };

/**
 * @param {Sending} sending
 * @returns {Promise<void>}
 * @throws {TransferFailed} or what `sign` throws
 */
export async function sendByUppy(sending) {
  sending.signal.throwIfAborted();
  try {
    await send(sending);
  } catch (error) {
    const isBroken = error instanceof TransferFailed && error.status === 0;
    if (isBroken && !(await isReadable(sending.data))) {
      throw new TransferFailed(0, "file_unreadable");
    }
    throw error;
  }
}

/**
 * Browsers call it a network error when a file has changed on disk or its drive is gone.
 * @param {Blob} data
 */
async function isReadable(data) {
  try {
    await data.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

/** @param {Sending} sending */
function send(sending) {
  const { data, contentType, chunks, signal } = sending;
  const uppy = new Uppy({ logger: SILENT });
  // Uppy's own time limit has no effect (its handler does nothing), so a dead line is found here.
  const stall = new Watchdog();
  let stop = () => {};
  return /** @type {Promise<void>} */ (
    new Promise((resolve, reject) => {
      stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop);
      stall.onStall = () => reject(new TransferFailed(0));
      uppy.use(AwsS3, {
        shouldUseMultipart: chunks !== null,
        getChunkSize: () => chunks?.chunk_bytes ?? data.size,
        generateObjectKey: () => "named by the signer",
        signRequest: (request) => signed(request, sending, stall),
      });
      listen(uppy, sending, stall, { resolve, reject });
      const id = uppy.addFile({ name: "file", type: contentType, data });
      if (chunks) uppy.setFileState(id, CONTINUED);
      uppy.upload().catch(reject);
    })
  ).finally(() => {
    signal.removeEventListener("abort", stop);
    stall.stop();
    uppy.destroy();
  });
}

/**
 * @param {{ method: string, partNumber?: number }} request that Uppy is about to send
 * @param {Sending} sending
 * @param {Watchdog} stall
 */
async function signed({ method, partNumber = 1 }, { sign, chunks }, stall) {
  if (method === "GET" && chunks) {
    stall.reset();
    return { url: chunks.stateUrl };
  }
  if (method !== "PUT") throw new ChunksSent();
  stall.stop();
  const url = await sign(partNumber);
  stall.reset();
  return { url };
}

/**
 * @param {Uppy<any, any>} uppy
 * @param {Sending} sending
 * @param {Watchdog} stall
 * @param {{ resolve: () => void, reject: (error: unknown) => void }} outcome
 */
function listen(uppy, { onProgress, onChunk }, stall, { resolve, reject }) {
  uppy.on("upload-progress", (_file, { bytesUploaded }) => {
    stall.reset();
    onProgress(Number(bytesUploaded));
  });
  uppy.on("s3-multipart:part-uploaded", (_file, { PartNumber, ETag }) => onChunk(PartNumber, ETag));
  uppy.on("upload-success", () => resolve());
  uppy.on("upload-error", (_file, error) => {
    if (error instanceof ChunksSent) resolve();
    else reject(translated(error));
  });
}

/**
 * @param {Error} error of Uppy's, known by its members: its classes are not exported, and their
 *   names don't outlive minification; or one of `sign`
 * @returns {Error}
 */
function translated(error) {
  if ("code" in error && error.code === "NETWORK") return new TransferFailed(0);
  if ("serviceCode" in error && "status" in error) return new TransferFailed(Number(error.status));
  if (error.message.includes("Missing ETag")) return new TransferFailed(200, "etag_hidden");
  return error;
}
