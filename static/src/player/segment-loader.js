/**
 * Loads segments for hls.js, past the browser's cache where that holds only a part of one: Chromium
 * can keep the first bytes of an interrupted answer as the whole, with status 200.
 */
import { XhrLoader } from "hls.js";

const BOX_HEADER_BYTES = 8;
// A box of this size has its size in the 8 bytes after its type.
const IS_LARGE = 1;
// Every segment ends with its samples; an initialisation segment describes the tracks.
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
        const isWhole = data instanceof ArrayBuffer && isWholeSegment(data);
        // A range of a segment need not end where a box does.
        if (isWhole || context.rangeEnd) callbacks.onSuccess(response, ...rest);
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
   * Fetch the segment from the server, and replace what the cache holds.
   * @param {import("hls.js").LoaderContext} context
   * @param {import("hls.js").LoaderConfiguration} config
   * @param {import("hls.js").LoaderCallbacks<import("hls.js").LoaderContext>} callbacks
   */
  async #reload(context, config, callbacks) {
    const { stats } = this;
    const timeout = AbortSignal.timeout(config.loadPolicy.maxLoadTimeMs);
    const signal = AbortSignal.any([this.#stop.signal, timeout]);
    let code = 0;
    try {
      const response = await fetch(context.url, { cache: "reload", signal });
      code = response.status;
      if (!response.ok) throw new Error(response.statusText);
      const data = await response.arrayBuffer();
      if (this.#stop.signal.aborted) return;
      stats.loading.end = performance.now();
      stats.loaded = stats.total = data.byteLength;
      callbacks.onSuccess({ url: response.url, data, code }, stats, context, response);
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        callbacks.onError({ code, text: String(error) }, context, null, stats);
      }
    }
  }
}

/** Whether these bytes are complete MP4 boxes with content. @param {ArrayBuffer} bytes */
function isWholeSegment(bytes) {
  const view = new DataView(bytes);
  let hasContent = false;
  let at = 0;
  while (at + BOX_HEADER_BYTES <= bytes.byteLength) {
    const type = String.fromCharCode(...new Uint8Array(bytes, at + 4, 4));
    hasContent ||= CONTENT_BOXES.includes(type);
    let size = view.getUint32(at);
    if (size === IS_LARGE && at + 2 * BOX_HEADER_BYTES <= bytes.byteLength) {
      size = Number(view.getBigUint64(at + BOX_HEADER_BYTES));
    }
    if (size < BOX_HEADER_BYTES) return false;
    at += size;
  }
  return hasContent && at === bytes.byteLength;
}

/** As hls.js's types ask for it: its own loaders are cast in the same way. */
export const fLoader = /** @type {import("hls.js").HlsConfig["fLoader"]} */ (
  /** @type {unknown} */ (SegmentLoader)
);
