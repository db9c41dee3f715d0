/**
 * Loader of segments for hls.js that bypasses the browser's cache if it holds an incomplete
 * segment: Chromium can keep the first bytes of an interrupted response as the whole, with status
 * 200.
 */
import { XhrLoader } from "hls.js";

const BOX_HEADER_BYTES = 8;
// This size means that the actual size is in the 8 bytes after the type.
const IS_LARGE = 1;
// Boxes of which every complete file has one: samples, or the tracks of an initialisation segment.
const CONTENT_BOXES = ["mdat", "moov"];

class SegmentLoader extends XhrLoader {
  #stop = new AbortController();

  /**
   * @override
   * @param {import("hls.js").LoaderContext} context
   * @param {import("hls.js").LoaderConfiguration} config
   * @param {import("hls.js").LoaderCallbacks<import("hls.js").LoaderContext>} callbacks
   */
  load(context, config, callbacks) {
    super.load(context, config, {
      ...callbacks,
      onSuccess: (response, ...rest) => {
        const { data } = response;
        const isComplete = data instanceof ArrayBuffer && isWholeSegment(data);
        // A byte range may end inside a box.
        if (isComplete || context.rangeEnd) callbacks.onSuccess(response, ...rest);
        else this.#reload(context, config, callbacks);
      },
    });
  }

  /** @override */
  abort() {
    this.#stop.abort();
    super.abort();
  }

  /** @override */
  destroy() {
    this.#stop.abort();
    super.destroy();
  }

  /**
   * Fetch the segment from the server, and replace it in the cache.
   * @param {import("hls.js").LoaderContext} context
   * @param {import("hls.js").LoaderConfiguration} config
   * @param {import("hls.js").LoaderCallbacks<import("hls.js").LoaderContext>} callbacks
   */
  async #reload(context, config, callbacks) {
    const { stats } = this;
    const timeout = AbortSignal.timeout(config.loadPolicy.maxLoadTimeMs);
    const signal = AbortSignal.any([this.#stop.signal, timeout]);
    let status = 0;
    try {
      const response = await fetch(context.url, { cache: "reload", signal });
      status = response.status;
      if (!response.ok) throw new Error(response.statusText);
      const data = await response.arrayBuffer();
      if (this.#stop.signal.aborted) return;
      stats.loading.end = performance.now();
      stats.loaded = stats.total = data.byteLength;
      callbacks.onSuccess({ url: response.url, data, code: status }, stats, context, response);
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        callbacks.onError({ code: status, text: String(error) }, context, null, stats);
      }
    }
  }
}

/** Return whether the bytes are complete MP4 boxes with content. @param {ArrayBuffer} bytes */
function isWholeSegment(bytes) {
  const view = new DataView(bytes);
  let hasContent = false;
  let offset = 0;
  while (offset + BOX_HEADER_BYTES <= bytes.byteLength) {
    const type = String.fromCharCode(...new Uint8Array(bytes, offset + 4, 4));
    hasContent ||= CONTENT_BOXES.includes(type);
    let size = view.getUint32(offset);
    if (size === IS_LARGE && offset + 2 * BOX_HEADER_BYTES <= bytes.byteLength) {
      size = Number(view.getBigUint64(offset + BOX_HEADER_BYTES));
    }
    if (size < BOX_HEADER_BYTES) return false;
    offset += size;
  }
  return hasContent && offset === bytes.byteLength;
}

/** Loader in the type that hls.js expects. hls.js casts its own loaders in the same way. */
export const fLoader = /** @type {import("hls.js").HlsConfig["fLoader"]} */ (
  /** @type {unknown} */ (SegmentLoader)
);
