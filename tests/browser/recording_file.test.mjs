/** File of a recording after a crash, without a browser. Run by `node --test`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { wholeLength } from "../../static/src/recording/fragments.js";

const BODY = 20;
/** Size in 64 bits, as boxes of 4 GiB have it. */
const LONG = 1;

/** @param {string} type @param {number} length of the body @param {number} [short] 32 bits of size */
function box(type, length = BODY, short = length + 8) {
  const isLong = short === LONG;
  const bytes = Buffer.alloc(length + (isLong ? 16 : 8));
  bytes.writeUInt32BE(short, 0);
  bytes.write(type, 4, "latin1");
  if (isLong) bytes.writeBigUInt64BE(BigInt(bytes.length), 8);
  return bytes;
}

const lengthOf = (...boxes) => {
  const file = Buffer.concat(boxes);
  return wholeLength(file.length, (start, end) => file.subarray(start, end));
};
const HEAD = [box("ftyp"), box("moov")];
const FRAGMENT = [box("moof"), box("mdat", 100)];
const WHOLE = 28 * 3 + 108;

test("a file ends with its last whole fragment, wherever it is torn", () => {
  assert.equal(lengthOf(...HEAD, ...FRAGMENT), WHOLE);
  const next = Buffer.concat(FRAGMENT);
  for (let torn = 1; torn < next.length; torn += 1) {
    assert.equal(lengthOf(...HEAD, ...FRAGMENT, next.subarray(0, torn)), WHOLE, `${torn} bytes`);
  }
  assert.equal(lengthOf(...HEAD, ...FRAGMENT, ...FRAGMENT), WHOLE + next.length);
});

test("the index after the last fragment is kept", () => {
  assert.equal(lengthOf(...HEAD, ...FRAGMENT, box("mfra")), WHOLE + 28);
});

test("a file without a whole fragment has nothing", () => {
  assert.equal(lengthOf(), 0);
  assert.equal(lengthOf(...HEAD), 0);
  assert.equal(lengthOf(...HEAD, box("moof")), 0);
});

test("long boxes are read, and boxes without an end or a size are torn", () => {
  const long = [box("moof"), box("mdat", 100, LONG)];
  assert.equal(lengthOf(...HEAD, ...long), WHOLE + 8);
  for (const size of [0, 2, 7]) {
    assert.equal(lengthOf(...HEAD, ...FRAGMENT, box("mdat", BODY, size)), WHOLE);
  }
});
