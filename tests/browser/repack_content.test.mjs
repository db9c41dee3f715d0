/** Content that a worker repacks, with workers that fail. Run by `node --test`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ContentFailed, TransferFailed } from "../../static/src/publishing/failures.js";
import { RepackedContent } from "../../static/src/repack/content.js";

const FILE = new File(["x".repeat(1000)], "film.mkv");

/** Worker that answers each message to it with these messages. */
function workerOf(...answers) {
  return class extends EventTarget {
    static ended = 0;
    postMessage(message) {
      if (message !== "next") return;
      const data = answers.shift();
      if (data) queueMicrotask(() => this.dispatchEvent(Object.assign(new Event("message"), { data })));
    }
    terminate() {
      this.constructor.ended += 1;
    }
  };
}

function contentOf(Worker) {
  globalThis.Worker = Worker;
  const source = { file: FILE, size_bytes: FILE.size, trim: null };
  return new RepackedContent("worker.js", source, { still: "", onStill: () => {} });
}

async function partsOf(Worker, stop = new AbortController(), content = contentOf(Worker)) {
  const sizes = [];
  for await (const part of content.parts(16, stop.signal)) {
    sizes.push([part.size, content.sourceBytesOf(part.size)]);
  }
  return sizes;
}

test("progress is told in bytes of the source", async () => {
  const first = { part: new ArrayBuffer(16), share: 0.5 };
  const second = { part: new ArrayBuffer(4), share: 1 };
  const Worker = workerOf(first, second, { isEnd: true });
  assert.deepEqual(await partsOf(Worker), [[16, 500], [4, 200]]);
  assert.equal(Worker.ended, 1);
});

test("progress of an attempt holds until the next one has made a part", async () => {
  const first = { part: new ArrayBuffer(16), share: 0.8 };
  const second = { part: new ArrayBuffer(4), share: 1 };
  const Worker = workerOf(first, second, { isEnd: true }, { failure: "stalled", detail: "" });
  const content = contentOf(Worker);
  await partsOf(Worker, undefined, content);
  await assert.rejects(partsOf(Worker, undefined, content), ContentFailed);
  assert.equal(content.sourceBytesOf(16), 800);
});

test("a worker's failure is a sentence, and a missing file can be chosen again", async () => {
  const Worker = workerOf({ failure: "unsupported_codec", detail: "" });
  await assert.rejects(partsOf(Worker), (error) => error instanceof ContentFailed && /HandBrake/.test(error.message));
  const gone = workerOf({ failure: "file_unreadable", detail: "" });
  await assert.rejects(partsOf(gone), (error) => error instanceof TransferFailed && error.code === "file_unreadable");
  assert.deepEqual([Worker.ended, gone.ended], [1, 1]);
});

test("a worker that is silent for a minute is stopped", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const Worker = workerOf();
  const waiting = assert.rejects(partsOf(Worker), ContentFailed);
  await new Promise((resolve) => setImmediate(resolve));
  context.mock.timers.tick(60_000);
  await waiting;
  assert.equal(Worker.ended, 1);
});

test("a paused upload ends its worker", async () => {
  const Worker = workerOf();
  const stop = new AbortController();
  const waiting = assert.rejects(partsOf(Worker, stop), { name: "AbortError" });
  await new Promise((resolve) => setImmediate(resolve));
  stop.abort();
  await waiting;
  assert.equal(Worker.ended, 1);
});
