/**
 * Transfer of content that is produced while it is sent, such as a recording. Each round sends the
 * parts that storage lacks, and then completes the upload with its size.
 */

import { PartSender } from "./part-sender.js";
import { Transfer } from "./transfer.js";

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./api.js").UploadState} UploadState */
/**
 * Content whose size is unknown until its end; `name` is the name of an MP4 file. Each iteration
 * starts at the first part and yields the same bytes: blobs of `part_bytes`, the last one shorter.
 * Progress is told in bytes of the source if there is one, which `sourceBytesOf` estimates.
 * @typedef {{ name: string,
 *   parts: (part_bytes: number, signal: AbortSignal) => AsyncIterable<Blob>,
 *   sourceBytesOf?: (bytes: number) => number }} Content
 */

/**
 * Transfer of one upload of unknown size. A new one with the key of an earlier transfer continues it:
 * parts that storage has already aren't sent again.
 * @extends {Transfer<File | null>}
 */
export class GrowingTransfer extends Transfer {
  /**
   * @param {{ content: Content, key: string, file?: File | null, fingerprint?: string }} source
   *   `file` is the one from which the content is made, if there is one
   * @param {Api} api
   */
  constructor({ content, key, file = null, fingerprint = "" }, api) {
    const target = { name: content.name, contentType: "video/mp4", size_bytes: null };
    super({ file, key, fingerprint }, target, api);
    this.content = content;
  }

  /** @override @param {UploadState | null} upload */
  async advance(upload) {
    return this.complete(await this.#sendParts(await this.begin(upload)));
  }

  /**
   * Send the parts that storage lacks, and return the size of the content.
   * @param {UploadState} upload
   */
  async #sendParts({ partSizeBytes, isGrowing, parts: stored }) {
    const storedSizes = new Map(stored.map((part) => [part.partNumber, part.sizeBytes]));
    const { content, report, succeeded } = this;
    const inSource = (/** @type {number | undefined} */ bytes) =>
      bytes === undefined ? bytes : (content.sourceBytesOf?.(bytes) ?? bytes);
    const sender = new PartSender(this.api, this.key, {
      stored_bytes: 0,
      isGrowing,
      report: ({ stored_bytes, sent_bytes, ...update }) => {
        const sizes = { stored_bytes: inSource(stored_bytes), sent_bytes: inSource(sent_bytes) };
        report({ ...update, ...sizes });
      },
      succeeded,
    });
    let size_bytes = 0;
    /** @param {AbortSignal} signal */
    async function* missingParts(signal) {
      let number = 0;
      for await (const data of content.parts(partSizeBytes, signal)) {
        number += 1;
        size_bytes += data.size;
        const part = { number, data };
        if (storedSizes.get(number) === data.size) sender.skip(part);
        else yield part;
      }
    }
    await sender.send(missingParts, partSizeBytes, this.signal);
    return size_bytes;
  }
}
