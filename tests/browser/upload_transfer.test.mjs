/** Transfer and publication of a file without a browser. Run by `node --test`. */

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { NoResponse, Refused, SIGNED_OUT } from "../../static/src/requests.js";
import { retry } from "../../static/src/retry.js";
import { publish } from "../../static/src/publishing/publication.js";
import { TRANSFER, TransferFailed } from "../../static/src/publishing/failures.js";
import { put, rangeOf, sendParts, sizeOf } from "../../static/src/publishing/storage.js";
import { GrowingTransfer } from "../../static/src/publishing/growing-transfer.js";
import { FileTransfer, partsToSend } from "../../static/src/publishing/file-transfer.js";
import { newUpload, withTransferUpdate } from "../../static/src/publishing/upload.js";
import { statusOf } from "../../static/src/publishing/texts.js";

const MIB = 2 ** 20;
const DETAILS = { title: "Sea", description: "", categoryIds: [1], tags: "", visibility: "private", share: "", series: "" };

test("the parts of the largest file are complete, in order, and at most ten thousand", () => {
  const sizeBytes = 5 * 2 ** 40;
  const partSizeBytes = Math.ceil(sizeBytes / 10_000 / MIB) * MIB;
  const partCount = Math.ceil(sizeBytes / partSizeBytes);
  const upload = { state: "uploading", sizeBytes, partSizeBytes, partCount, parts: [] };
  const numbers = partsToSend(upload, new Map());
  assert.ok(numbers.length <= 10_000);
  assert.equal(numbers.reduce((sum, number) => sum + sizeOf(upload, number), 0), sizeBytes);
  for (const number of numbers.slice(1)) {
    assert.equal(rangeOf(upload, number).start, rangeOf(upload, number - 1).end);
  }
  assert.equal(rangeOf(upload, partCount).end, sizeBytes);
});

test("parts that storage lacks or has with other content are sent", () => {
  const part = (partNumber, sizeBytes, etag = `e${partNumber}`) => ({ partNumber, sizeBytes, etag });
  const parts = [part(1, 10), part(2, 9), part(3, 10, '"other"'), part(4, 5)];
  const upload = { state: "uploading", sizeBytes: 45, partSizeBytes: 10, partCount: 5, parts };
  assert.deepEqual(partsToSend(upload, new Map()), [2, 4, 5]);
  assert.deepEqual(partsToSend(upload, new Map([[1, '"e1"'], [3, "e3"]])), [2, 3, 4, 5]);
});

test("a request that may have succeeded is kept when the session has ended", async () => {
  const request = { ...DETAILS, fileName: "a.mp4", key: "k" };
  for (const pendingRequest of [null, { ...request, title: "Before" }]) {
    const remembered = [];
    const api = { publish: () => Promise.reject(new Refused(401)) };
    await assert.rejects(publish(api, request, pendingRequest, (saved) => remembered.push(saved)), {
      message: SIGNED_OUT,
      needsUpload: false,
    });
    // A refused request is forgotten; an earlier one without a response is kept.
    assert.deepEqual(remembered, pendingRequest ? [] : [request, null]);
  }
});

/** Portal whose first response was lost; `recorded` is the video, if the request succeeded. */
function portalWith(recorded) {
  const calls = [];
  const change = (resource, body, etag) => {
    assert.equal(etag, `"${resource}"`);
    calls.push([resource, body.visibility]);
    return Object.assign(recorded, body);
  };
  const api = {
    publish: async (request) => {
      calls.push(["publish", request.visibility]);
      recorded ??= { title: request.title, visibility: request.visibility };
      const present = { id: "v", title: recorded.title };
      if (recorded.visibility === request.visibility) return present;
      throw new Refused(409, { code: "visibility_differs", present });
    },
    readResource: async (_id, resource) => ({ json: recorded, etag: `"${resource}"` }),
    changeAccess: async (_id, body, etag) => change("access", body, etag),
    changeMetadata: async (_id, body, etag) => change("metadata", body, etag),
  };
  return { api, calls };
}

const WANTED = { ...DETAILS, fileName: "a.mp4", key: "k" };

test("a video whose first request was lost is never visible to more people than chosen", async () => {
  const remembered = [];
  const { api, calls } = portalWith(null);
  await publish(api, WANTED, { ...WANTED, visibility: "public" }, (request) => remembered.push(request));
  assert.deepEqual(calls[0], ["publish", "private"]);
  // If this response is lost, too, the video may have either visibility.
  assert.deepEqual(remembered, [{ ...WANTED, visibility: "" }]);
});

test("later changes are made to a video whose first request succeeded", async () => {
  for (const before of ["public", ""]) {
    const recorded = { visibility: "public", signedInOnly: true, embedOrigins: ["https://a.example"] };
    await publish(portalWith(recorded).api, WANTED, { ...WANTED, visibility: before }, () => {});
    const { visibility, signedInOnly, embedOrigins } = recorded;
    assert.deepEqual([visibility, signedInOnly, embedOrigins.length], ["private", false, 1]);
  }
  const { api, calls } = portalWith({ title: "See" });
  const { title } = await publish(api, WANTED, { ...WANTED, title: "See" }, () => {});
  assert.equal(title, "Sea");
  assert.deepEqual(calls, [["publish", "private"], ["metadata", undefined]]);
});

test("a video whose first request succeeded gets the present members and shares", async () => {
  const created = { title: "Sea", visibility: "private", signedInOnly: false, shares: [{ id: "1", right: "edit" }] };
  const pending = { ...WANTED, share: "Choir" };
  // The visibility that the API knows is the same.
  await publish(portalWith(created).api, { ...pending, visibility: "members" }, pending, () => {});
  const shares = [{ name: "Choir", right: "watch" }];
  assert.deepEqual([created.visibility, created.signedInOnly, created.shares], ["private", true, shares]);
  await publish(portalWith(created).api, { ...WANTED, share: "ann@example.org; Choir," }, pending, () => {});
  assert.deepEqual(created.shares.map(({ name }) => name), ["ann@example.org", "Choir"]);
  assert.equal(created.signedInOnly, false);
  await publish(portalWith(created).api, { ...pending, visibility: "page" }, pending, () => {});
  assert.deepEqual([created.visibility, created.hasPublicPage], ["private", true]);
});

test("the fault of a name is one of the field, and keeps the request that had succeeded", async () => {
  const remembered = [];
  const { api } = portalWith({ title: "Sea", visibility: "private" });
  const fault = { pointer: "/shares/0/name", message: "“ghost” is nobody here." };
  api.changeAccess = () => Promise.reject(new Refused(422, { faults: [fault] }));
  const wanted = { ...WANTED, share: "ghost" };
  await assert.rejects(publish(api, wanted, WANTED, (request) => remembered.push(request)), {
    faults: [{ ...fault, pointer: "/share" }],
    needsUpload: false,
  });
  assert.deepEqual(remembered, [{ ...WANTED, visibility: "" }]);
});

test("a repeated request does not change the video", async () => {
  const { api, calls } = portalWith({ title: "Sea" });
  await publish(api, WANTED, WANTED, () => assert.fail("there is nothing new to remember"));
  assert.deepEqual(calls, [["publish", "private"]]);
});

/** Sends six parts, of which some can be signed, and storage takes the first after this time. */
async function sentParts(signed, first_ms, partSizeBytes = 10 * MIB) {
  const open = [];
  const arrived = [];
  const send = async ({ number }) => {
    if (number > signed) throw new Refused(401);
    await new Promise((resolve) => open.push(resolve));
    arrived.push(number);
  };
  const settle = () => new Promise((resolve) => setTimeout(resolve));
  const clock = mock.method(performance, "now", () => 0);
  try {
    const parts = [1, 2, 3, 4, 5, 6].map((number) => ({ number, data: { size: partSizeBytes } }));
    const sent = sendParts(() => parts, partSizeBytes, send, new AbortController().signal);
    sent.catch(() => {});
    await settle();
    clock.mock.mockImplementation(() => first_ms);
    open.shift()();
    await settle();
    const together = open.length;
    for (const take of open) take();
    await settle();
    return { sent, together, arrived };
  } finally {
    clock.mock.restore();
  }
}

test("parts in flight arrive even if the next one can't be signed", async () => {
  const { sent, arrived } = await sentParts(3, 1000);
  await assert.rejects(sent, { status: 401 });
  assert.deepEqual(arrived, [1, 2, 3]);
});

test("parts are sent one after the other on a slow connection", async () => {
  assert.equal((await sentParts(4, 1000)).together, 3);
  assert.equal((await sentParts(2, 10_000)).together, 1);
});

test("parts far ahead of the lowest unconfirmed one wait, and huge ones are sent one by one", async () => {
  assert.equal((await sentParts(3, 1000, 100 * MIB)).together, 2);
  assert.equal((await sentParts(2, 1000, 525 * MIB)).together, 1);
});

/** Runs with timers that take no time; answers the pauses in between. */
async function pausesOf(run) {
  const pauses = [];
  const timers = mock.method(globalThis, "setTimeout", (resume, pause_ms) => {
    pauses.push(pause_ms);
    queueMicrotask(resume);
  });
  try {
    await run();
  } finally {
    timers.mock.restore();
  }
  return pauses;
}

test("retries have growing, jittered pauses and end after about two minutes", async () => {
  const failure = new NoResponse("no answer");
  const pauses = await pausesOf(() =>
    assert.rejects(retry(() => Promise.reject(failure)), failure),
  );
  pauses.forEach((pause_ms, index) => {
    const longest_ms = Math.min(500 * 2 ** index, 15_000);
    assert.ok(pause_ms >= longest_ms / 2 && pause_ms <= longest_ms);
  });
  const spent_ms = pauses.reduce((sum, pause_ms) => sum + pause_ms, 0);
  assert.ok(spent_ms > 90_000 && spent_ms <= 120_000);
  // An outer retry must not start again.
  assert.deepEqual(await pausesOf(() => assert.rejects(retry(() => Promise.reject(failure)))), []);
});

test("a request to a busy portal is retried after its Retry-After", async () => {
  let tries = 0;
  const pauses = await pausesOf(async () => {
    await retry(async () => {
      tries += 1;
      if (tries === 1) throw new Refused(429, { retryAfter_s: 7 });
    });
  });
  assert.equal(pauses.length, 1);
  assert.ok(pauses[0] >= 7000 && pauses[0] < 8000);
});

test("a permanent refusal is final, and so is the third refusal by storage in a row", async () => {
  const refusal = new Refused(422);
  assert.deepEqual(await pausesOf(() => assert.rejects(retry(() => Promise.reject(refusal)))), []);
  const forbidden = async () => {
    throw new TransferFailed(403);
  };
  const pauses = await pausesOf(() => assert.rejects(retry(forbidden, TRANSFER)));
  assert.equal(pauses.length, 2);
});

test("an abort ends the pause before a retry", async () => {
  const stop = new AbortController();
  const run = retry(() => Promise.reject(new NoResponse("no answer")), {
    signal: stop.signal,
    onError: () => queueMicrotask(() => stop.abort(new Error("stopped"))),
  });
  await assert.rejects(run, /stopped/);
});

test("an upload without a response names the cause within five seconds", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let upload = { ...newUpload(1), phase: "sending", size_bytes: 1 };
  let reportRequest = () => {};
  const hasRequested = new Promise((resolve) => (reportRequest = resolve));
  const api = { presign: () => new Promise(() => reportRequest()) };
  const source = { file: new File(["x"], "a.mp4"), contentType: "video/mp4", key: "", fingerprint: "f" };
  new FileTransfer(source, api).run((update) => (upload = withTransferUpdate(upload, update, 0)), new AbortController().signal);
  await hasRequested;
  assert.equal(statusOf(upload).rest, "");
  context.mock.timers.tick(5000);
  assert.equal(statusOf(upload).rest, "Waiting for storage to respond…");
  assert.equal(statusOf(withTransferUpdate(upload, { isSilent: false }, 0)).rest, "");
});

const PART_BYTES = 16 * MIB;
const FILM = Object.defineProperty(new File(["x"], "a.mp4"), "size", { value: 4 * PART_BYTES + 5 });

class FakePut extends EventTarget {
  upload = new EventTarget();
  status = 200;

  open() {}
  setRequestHeader() {}
  abort() {}

  getResponseHeader() {
    return '"e"';
  }
}

/** Portal and storage of an upload in parts; `answers` may refuse a PUT by the part's number. */
class FakeStorage {
  parts = new Map();
  puts = [];
  answers = () => 200;

  api = {
    presign: async () => ({ key: "k", uploadUrl: "" }),
    begin: async () => {
      this.parts ??= new Map();
      return this.#state("uploading");
    },
    read: async () => this.#state(this.parts?.size ? "uploading" : "pending"),
    signPart: async (_key, number) => `${number}?${this.puts.length}`,
    complete: async () => this.#state("stored"),
  };

  #state(state) {
    const parts = [...(this.parts?.values() ?? [])];
    return { state, sizeBytes: FILM.size, partSizeBytes: PART_BYTES, partCount: 5, parts };
  }

  /** Sends the film, and answers the numbers of the parts that were PUT meanwhile. */
  async run(transfer, signal = new AbortController().signal) {
    const storage = this;
    const own = globalThis.XMLHttpRequest;
    const began = this.puts.length;
    globalThis.XMLHttpRequest = class extends FakePut {
      open(_method, url) {
        this.number = Number.parseInt(url, 10);
      }
      send() {
        storage.puts.push(this.number);
        this.status = storage.answers(this.number, storage.puts.length - began);
        const etag = `"e"`;
        const sizeBytes = Math.min(PART_BYTES, FILM.size - (this.number - 1) * PART_BYTES);
        const part = { partNumber: this.number, sizeBytes, etag };
        if (this.status === 200) storage.parts?.set(this.number, part);
        for (const name of [this.status ? "load" : "error", "loadend"]) this.dispatchEvent(new Event(name));
      }
    };
    try {
      await pausesOf(() => transfer.run(() => {}, signal));
    } finally {
      globalThis.XMLHttpRequest = own;
    }
    return this.puts.slice(began);
  }
}

const transferTo = ({ api }) =>
  new FileTransfer({ file: FILM, contentType: "video/mp4", key: "", fingerprint: "f" }, api);
const sorted = (numbers) => numbers.toSorted((number, other) => number - other);

test("broken connections and expired URLs repeat only their own parts", async () => {
  const storage = new FakeStorage();
  storage.answers = (number, count) => (count === 2 ? 0 : count === 4 ? 403 : 200);
  const puts = await storage.run(transferTo(storage));
  assert.equal(puts.length, 7);
  assert.deepEqual(sorted([...new Set(puts)]), [1, 2, 3, 4, 5]);
});

test("an interrupted upload sends the missing parts", async () => {
  const storage = new FakeStorage();
  const transfer = transferTo(storage);
  const stop = new AbortController();
  storage.answers = (_number, count) => {
    if (count === 3) stop.abort(new Error("paused"));
    return 200;
  };
  await assert.rejects(storage.run(transfer, stop.signal), /paused/);
  const stored = new Set(storage.parts.keys());
  storage.answers = () => 200;
  const rest = await storage.run(transfer);
  assert.deepEqual(sorted(rest), [1, 2, 3, 4, 5].filter((number) => !stored.has(number)));
});

test("an upload that storage no longer has restarts by itself", async () => {
  const storage = new FakeStorage();
  storage.answers = (_number, count) => {
    if (count !== 2) return 200;
    storage.parts = null;
    return 404;
  };
  const puts = await storage.run(transferTo(storage));
  assert.deepEqual(sorted([...new Set(puts)]), [1, 2, 3, 4, 5]);
  assert.equal(storage.parts.size, 5);
});

/** Content like the film, which ends after `parts` and then waits for ever, or ends. */
function contentOf(parts = 5, ends = true) {
  return {
    name: "a.mp4",
    async *parts(part_bytes, signal) {
      for (let number = 0; number < parts; number += 1) {
        yield { size: Math.min(part_bytes, FILM.size - number * part_bytes) };
      }
      if (ends) return;
      await new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        if (signal.aborted) reject(signal.reason);
      });
    },
  };
}

test("growing content is sent in parts, and completed with its size", async () => {
  const storage = new FakeStorage();
  const completed = mock.method(storage.api, "complete");
  const signed = mock.method(storage.api, "signPart");
  storage.api.begin = async (_key, sizeBytes) => {
    assert.equal(sizeBytes, null);
    return { state: "uploading", isGrowing: true, partSizeBytes: PART_BYTES, parts: [] };
  };
  const transfer = new GrowingTransfer({ content: contentOf(), key: "" }, storage.api);
  assert.deepEqual(sorted(await storage.run(transfer)), [1, 2, 3, 4, 5]);
  assert.equal(completed.mock.calls[0].arguments[2], FILM.size);
  assert.equal(signed.mock.calls[0].arguments[3], PART_BYTES);
});

test("growing content that goes on after an interruption sends the missing parts", async () => {
  const storage = new FakeStorage();
  const stop = new AbortController();
  storage.answers = (_number, count) => {
    if (count === 2) stop.abort(new Error("crashed"));
    return 200;
  };
  const first = new GrowingTransfer({ content: contentOf(3, false), key: "" }, storage.api);
  await assert.rejects(storage.run(first, stop.signal), /crashed/);
  const stored = new Set(storage.parts.keys());
  assert.ok(stored.size);
  storage.answers = () => 200;
  const second = new GrowingTransfer({ content: contentOf(), key: "k" }, storage.api);
  const rest = await storage.run(second);
  assert.deepEqual(sorted(rest), [1, 2, 3, 4, 5].filter((number) => !stored.has(number)));
});

test("a refusal ends growing content that waits for its next part", async () => {
  const storage = new FakeStorage();
  storage.api.signPart = async () => Promise.reject(new Refused(422, { code: "validation_failed" }));
  const transfer = new GrowingTransfer({ content: contentOf(1, false), key: "" }, storage.api);
  await assert.rejects(storage.run(transfer), { code: "validation_failed" });
});

test("an unreadable file is distinguished from a broken connection", async () => {
  const own = globalThis.XMLHttpRequest;
  globalThis.XMLHttpRequest = class extends FakePut {
    send() {
      for (const name of ["error", "loadend"]) this.dispatchEvent(new Event(name));
    }
  };
  const { signal } = new AbortController();
  const sent = (data) => put("https://storage.example/", data, { onProgress: () => {}, signal });
  const gone = { slice: () => ({ arrayBuffer: () => Promise.reject(new Error("gone")) }) };
  await assert.rejects(sent(gone), { code: "file_unreadable" });
  await assert.rejects(sent(new Blob(["x"])), { code: "", status: 0 });
  globalThis.XMLHttpRequest = own;
});
