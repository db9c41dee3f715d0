/** Texts of the page that records, without a browser. Run by `node --test`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import * as texts from "../../static/src/recording/texts.js";

test("a device that the browser refuses, lacks or can't start is named", () => {
  const refused = (kind, name) => texts.sourceErrorText(kind, new DOMException("", name));
  assert.match(refused("microphone", "NotAllowedError"), /^The microphone isn’t allowed\. Allow it/);
  assert.match(refused("camera", "NotAllowedError"), /^The camera isn’t allowed\. Allow it/);
  assert.match(refused("screen", "NotAllowedError"), /^No screen was chosen/);
  assert.equal(refused("microphone", "NotFoundError"), "There is no microphone.");
  assert.match(refused("camera", "NotReadableError"), /Another program may use it\.$/);
  assert.match(texts.sourceErrorText("camera", new TypeError("constraints")), /^The camera doesn’t start/);
});

test("a recording that ends by itself says why, and whether anything is kept", () => {
  for (const reason of [
    texts.SCREEN_ENDED,
    texts.CAMERA_ENDED,
    texts.DISK_FULL,
    texts.LIMIT_REACHED,
    texts.RECORDER_FAILED,
  ]) {
    assert.equal(texts.endText(reason, false), `${reason} What was recorded is kept.`);
    assert.equal(texts.endText(reason, true), `${reason} Nothing was recorded.`);
  }
  assert.equal(texts.endText("", false), "");
  assert.equal(texts.endText("", true), "Nothing was recorded.");
});

test("another microphone can be chosen during a recording, but no other camera", () => {
  const unplugged = (device) => texts.warningText({ kind: "unplugged", device });
  assert.match(unplugged("microphone"), /^The microphone was unplugged\. Choose another one/);
  assert.equal(
    unplugged("camera"),
    "The camera was unplugged. The recording goes on without it.",
  );
});
