/** Reports of the player without a browser. Run by `node --test`. */

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { buildSync } from "../../static/node_modules/esbuild/lib/main.js";
import { startReports } from "../../static/src/player/reports.js";

const DESKTOP = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36";
const FRAME_MS = 250;

/** Media element whose position is set by the test. */
class Video extends EventTarget {
  dataset = { reports: "/api/playback", video: "0198c0de" };
  currentTime = 0;
  duration = 600;
  readyState = 4;
  playbackRate = 1;
  videoWidth = 1280;
  videoHeight = 720;
  paused = true;
  seeking = false;
  ended = false;

  send(...names) {
    for (const name of names) this.dispatchEvent(new Event(name));
  }

  /** Press play on a stream that can play at once. */
  start() {
    this.paused = false;
    this.send("play", "playing");
  }

  /** Let the element play for a time. */
  run(duration_s) {
    for (let left_ms = duration_s * 1000; left_ms > 0; left_ms -= FRAME_MS) {
      this.currentTime += (FRAME_MS / 1000) * this.playbackRate;
      pass(FRAME_MS);
      this.send("timeupdate");
    }
  }

  pause() {
    this.paused = true;
    this.send("timeupdate", "pause");
  }

  seek(position_s) {
    this.seeking = true;
    this.currentTime = position_s;
    this.send("timeupdate", "seeking");
  }

  settle() {
    this.seeking = false;
    this.send("timeupdate", "seeked");
  }
}

let now_ms;
/** Bodies of the requests and of the beacons. */
let requests;
let beacons;
/** Responses by turn: a status, `Error`, or a status with headers; 204 when there are no more. */
let responses;
let video;
let page;

/** Let time pass. */
function pass(duration_ms) {
  now_ms += duration_ms;
  mock.timers.tick(duration_ms);
}

/** Let requests end. */
async function answered() {
  await new Promise(setImmediate);
}

async function passAndAnswer(duration_ms) {
  pass(duration_ms);
  await answered();
}

function start({
  dataset = {},
  userAgent = DESKTOP,
  maxTouchPoints = 0,
  referrer = "",
  userActivation = undefined,
} = {}) {
  const sendBeacon = (url, body) => beacons.push({ url, body }) > 0;
  const navigator = { userAgent, maxTouchPoints, sendBeacon, userActivation };
  Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
  globalThis.location = { host: "videos.example.org" };
  globalThis.window = new EventTarget();
  globalThis.document = Object.assign(new EventTarget(), { referrer, visibilityState: "visible" });
  Object.assign(video.dataset, dataset);
  page = new AbortController();
  startReports(video, page.signal);
}

function hide() {
  document.visibilityState = "hidden";
  document.dispatchEvent(new Event("visibilitychange"));
}

/** Return the members of a line, as text. */
function parse(line) {
  return Object.fromEntries(line.split(",").map((member) => member.split(/=(.*)/s)));
}

/** Return the lines of the last beacon, which a hidden page sends. */
async function lines() {
  await passAndAnswer(1_000);
  hide();
  return (await beacons.at(-1).body.text()).split("\n").map(parse);
}

/** Return the states with their positions, such as `p 1000`. */
async function states() {
  return (await lines()).map(({ e, sta, pt }) => `${e === "ps" ? "" : `${e} `}${sta} ${pt}`);
}

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  now_ms = 1_000;
  performance.now = () => now_ms;
  requests = [];
  beacons = [];
  responses = [];
  video = new Video();
  globalThis.fetch = async (url, options) => {
    requests.push({ url, ...options, lines: options.body.split("\n").map(parse) });
    const response = (await responses.shift()) ?? 204;
    if (response === Error) throw new TypeError("no connection");
    const { status = response, headers } = response;
    return new Response(null, { status, headers });
  };
});

test("reports add little to the player's script", () => {
  const entryPoints = ["src/player/reports.js"];
  const options = { bundle: true, minify: true, format: "esm", write: false };
  const [{ contents }] = buildSync({ entryPoints, ...options }).outputFiles;
  assert.ok(contents.length <= 8_000, `${contents.length} bytes`);
});

test("nothing is reported without an address, or before the first play", async () => {
  start();
  video.seek(5);
  video.settle();
  video.send("pause", "playing", "waiting", "ended", "ratechange");
  video.dispatchEvent(new CustomEvent("trouble", { detail: "network" }));
  hide();
  video = new Video();
  start({ dataset: { reports: "" } });
  video.start();
  video.run(20);
  hide();
  await answered();
  assert.deepEqual([requests, beacons], [[], []]);
});

test("playback that begins by itself is reported from the first gesture on", async () => {
  const userActivation = { hasBeenActive: false };
  start({ userActivation });
  video.start();
  video.send("waiting", "playing");
  video.run(30);
  hide();
  await answered();
  assert.deepEqual([requests, beacons], [[], []]);
  userActivation.hasBeenActive = true;
  video.run(10.25);
  video.pause();
  assert.deepEqual(await states(), ["p 30250", "t p 40250", "a 40250"]);
  assert.ok(!("msd" in (await lines())[0]));
});

test("a line describes playback in the keys of CMCD", async () => {
  start({ dataset: { embedded: "" }, referrer: "https://blog.example.com:8443/post?secret" });
  video.videoWidth = 0;
  video.paused = false;
  video.send("play");
  pass(640);
  video.videoWidth = 405;
  video.playbackRate = 1.5;
  video.send("playing");
  const [first, second] = await lines();
  const { sid, ts, ...others } = first;
  assert.match(sid, /^"\d+-\d+-\d+-\d+"$/);
  assert.equal(Number(ts), Math.round(performance.timeOrigin + 1_000));
  assert.deepEqual(others, {
    v: "2",
    cid: '"0198c0de"',
    e: "ps",
    sta: "s",
    sn: "0",
    pt: "0",
    "portal-place": "embed",
    "portal-device": "desktop",
    "portal-site": '"blog.example.com:8443"',
  });
  const { sn, sta, msd, pr, "portal-height": height } = second;
  assert.deepEqual([sn, sta, msd, pr, height], ["1", "p", "640", "1.50", '"405"']);
  assert.equal(second.sid, sid);
});

test("the site is left out on the portal's own pages, and a long one is cut", async () => {
  start({ referrer: "https://videos.example.org/" });
  video.start();
  const [own] = await lines();
  assert.equal(own["portal-place"], "page");
  assert.ok(!("portal-site" in own));

  video = new Video();
  start({ referrer: `https://${"a".repeat(60)}.example.org/` });
  video.start();
  const [long] = await lines();
  assert.equal(long["portal-site"].length, '""'.length + 64);
});

test("the device is known by its user agent, and an iPad by its touch screen", async () => {
  const android = "Mozilla/5.0 (Linux; Android 15; Pixel 9) Chrome/140.0";
  const mac = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/18.0 Safari/605.1.15";
  const devices = [
    ["desktop", DESKTOP, 10],
    ["desktop", mac, 0],
    ["tablet", mac, 5],
    ["tablet", `${android} Safari/537.36`, 5],
    ["phone", `${android} Mobile Safari/537.36`, 5],
    ["phone", "Mozilla/5.0 (iPhone; CPU iPhone OS 16_0 like Mac OS X) Mobile/15E148", 5],
    ["tv", "Mozilla/5.0 (SMART-TV; LINUX; Tizen 5.0) Version/5.0 TV Safari/537.36", 0],
    ["tv", "Mozilla/5.0 (Web0S; Linux/SmartTV) Chrome/120.0 Safari/537.36", 0],
  ];
  for (const [device, userAgent, maxTouchPoints] of devices) {
    video = new Video();
    start({ userAgent, maxTouchPoints });
    video.start();
    const [line] = await lines();
    assert.equal(line["portal-device"], device, userAgent);
  }
});

test("start, pause and end are states, and playing is confirmed every ten seconds", async () => {
  responses = [503, 503, 503];
  video.duration = 24;
  start();
  // The stream is opened at the saved position after play was pressed.
  video.readyState = 0;
  video.paused = false;
  video.send("play", "waiting");
  video.readyState = 4;
  video.seek(1);
  video.settle();
  video.send("playing");
  video.run(21);
  video.pause();
  pass(100_000);
  video.start();
  video.run(2);
  video.paused = video.ended = true;
  video.send("waiting", "pause", "ended");
  assert.deepEqual(await states(), [
    ...["s 0", "p 1000", "t p 11000", "t p 21000"],
    ...["a 22000", "p 22000", "e 24000"],
  ]);
});

test("a seek has the position before it, and its wait is not a stall", async () => {
  start();
  video.start();
  video.run(3);
  video.seek(40);
  video.send("waiting");
  // Another target during the seek.
  video.seek(80);
  video.settle();
  video.send("playing");
  video.run(1);
  video.pause();
  video.seek(5);
  video.settle();
  const later = ["p 80000", "a 81000", "k 81000", "a 5000"];
  assert.deepEqual(await states(), ["s 0", "p 0", "k 3000", ...later]);
});

test("a stall that is not a seek lasts until playback continues", async () => {
  start();
  video.start();
  video.run(3);
  video.send("waiting", "timeupdate");
  pass(4_000);
  // hls.js moves the position over a gap.
  video.seek(3.1);
  video.settle();
  video.send("playing");
  video.run(1);
  assert.deepEqual(await states(), ["s 0", "p 0", "r 3000", "p 3100", "t p 4100"]);
});

test("a stream that is opened again during playback is a stall", async () => {
  start();
  video.start();
  video.run(3);
  Object.assign(video, { readyState: 0, currentTime: 0, paused: true });
  video.send("emptied", "timeupdate");
  Object.assign(video, { readyState: 1, paused: false });
  video.send("play");
  video.seek(3);
  video.readyState = 4;
  video.settle();
  video.send("playing");
  assert.deepEqual((await states()).slice(1), ["p 0", "r 3000", "p 3000", "t p 3000"]);
});

test("native playback: `stalled` means nothing, and progress shows the end of a seek", async () => {
  start();
  video.start();
  video.run(2);
  video.send("stalled", "suspend");
  video.run(1);
  video.seek(40);
  // Early, while the browser has no data there.
  video.settle();
  video.send("waiting");
  pass(3_000);
  video.run(2);
  assert.deepEqual(await states(), ["s 0", "p 0", "k 3000", "p 40250", "t p 42000"]);
});

test("native playback begins when its first seek ends", async () => {
  start();
  video.paused = false;
  video.seek(0);
  video.send("play", "playing", "waiting");
  pass(90);
  video.settle();
  video.send("playing");
  assert.deepEqual((await lines()).map(({ sta, msd }) => [sta, msd]), [
    ["s", undefined],
    ["p", "90"],
    ["p", undefined],
  ]);
});

test("a change of speed is reported while the video plays", async () => {
  start();
  video.playbackRate = 2;
  video.send("ratechange");
  video.start();
  video.run(1);
  video.playbackRate = 1;
  video.send("ratechange");
  video.run(1);
  video.pause();
  video.playbackRate = 2;
  video.send("ratechange");
  assert.deepEqual(
    (await lines()).map(({ sta, pt, pr }) => [sta, pt, pr]),
    [["s", "0", "2.00"], ["p", "0", "2.00"], ["p", "2000", undefined], ["a", "3000", undefined]],
  );
});

test("trouble is reported at once, and once until the video plays again", async () => {
  start();
  video.start();
  video.run(1);
  for (const detail of ["network", "network"]) {
    video.dispatchEvent(new CustomEvent("trouble", { detail }));
  }
  await passAndAnswer(0);
  const reported = requests[0].lines.map(({ e, sta, ec }) => [e, sta, ec]);
  assert.deepEqual(reported, [
    ["ps", "s", undefined],
    ["ps", "p", undefined],
    ["e", "f", '("network")'],
  ]);
  video.send("playing");
  video.dispatchEvent(new CustomEvent("trouble", { detail: "decode" }));
  await passAndAnswer(0);
  assert.deepEqual(requests[1].lines.map(({ sta }) => sta), ["p", "f"]);
});

test("the first lines are sent after 12 seconds, others every 100 seconds and at the end", async () => {
  start();
  video.start();
  video.run(11);
  assert.equal(requests.length, 0);
  video.run(1);
  const [{ url, method, headers, keepalive }] = requests;
  assert.deepEqual({ url, method, headers, keepalive }, {
    url: "/api/playback",
    method: "POST",
    headers: { "Content-Type": "application/cmcd" },
    keepalive: true,
  });
  await answered();
  video.run(100);
  const numbers = requests[1].lines.map(({ sn }) => Number(sn));
  assert.deepEqual(numbers, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  await answered();
  video.pause();
  await passAndAnswer(100_000);
  await passAndAnswer(100_000);
  assert.equal(requests.length, 3);
  video.start();
  video.ended = video.paused = true;
  video.send("ended");
  await passAndAnswer(0);
  assert.deepEqual(requests[3].lines.map(({ sta }) => sta), ["p", "e"]);
});

test("one request is sent at a time", async () => {
  let respond;
  responses = [new Promise((resolve) => (respond = resolve))];
  start();
  video.start();
  video.run(12);
  video.send("ended");
  await passAndAnswer(0);
  assert.equal(requests.length, 1);
  respond(204);
  await answered();
  await passAndAnswer(0);
  assert.deepEqual(requests[1].lines.map(({ sta }) => sta), ["e"]);
});

test("lines are sent again after pauses that double, or that the portal asked for", async () => {
  responses = [503, Error, 408, { status: 429, headers: { "Retry-After": "200" } }, 500, 502, 503];
  start();
  video.start();
  video.run(12);
  video.pause();
  // The end of the video doesn't shorten a pause.
  await answered();
  video.send("ended");
  for (const [index, pause_s] of [10, 20, 40, 200, 160, 300, 300].entries()) {
    await passAndAnswer(pause_s * 1000 - 1);
    assert.equal(requests.length, index + 1);
    await passAndAnswer(1);
    assert.equal(requests.length, index + 2);
  }
  assert.deepEqual(requests.at(-1).lines.map(({ sn }) => sn), ["0", "1", "2", "3", "4"]);
  await passAndAnswer(100_000);
  assert.equal(requests.length, 8);
});

test("lines that the portal refuses are forgotten", async () => {
  responses = [400];
  start();
  video.start();
  video.run(12);
  await answered();
  video.pause();
  await passAndAnswer(100_000);
  assert.deepEqual(requests[1].lines.map(({ sta }) => sta), ["a"]);
});

test("410 ends reporting", async () => {
  responses = [410];
  start();
  video.start();
  video.run(12);
  await answered();
  video.run(120);
  video.send("ended");
  await passAndAnswer(100_000);
  hide();
  assert.deepEqual([requests.length, beacons.length], [1, 0]);
});

test("a hidden page sends what isn't acknowledged, once for both events", async () => {
  start();
  video.start();
  video.run(12);
  await answered();
  video.run(5);
  window.dispatchEvent(new Event("pagehide"));
  hide();
  assert.equal(beacons.length, 1);
  const [{ url, body }] = beacons;
  assert.deepEqual([url, body.type], ["/api/playback", "application/cmcd"]);
  assert.equal(parse(await body.text()).pt, "17000");
  // The browser doesn't tell whether a beacon arrived.
  await passAndAnswer(100_000);
  assert.equal(requests[1].lines[0].pt, "17000");
});

test("without beacons a request outlives the page", async () => {
  start();
  video.start();
  for (const sendBeacon of [() => false, undefined]) {
    navigator.sendBeacon = sendBeacon;
    pass(1_000);
    hide();
  }
  assert.deepEqual(requests.map(({ keepalive }) => keepalive), [true, true]);
});

test("a removed player sends its lines and stops", async () => {
  start();
  video.start();
  video.run(3);
  // The stream is closed first.
  Object.assign(video, { readyState: 0, currentTime: 0 });
  page.abort();
  assert.match(await beacons[0].body.text(), /e=t,sta=p,.*pt=3000/);
  video.send("ended", "playing");
  video.run(120);
  hide();
  await answered();
  assert.deepEqual([requests.length, beacons.length], [0, 1]);
});

test("the newest lines are kept while the portal can't be reached", async () => {
  responses = Array(1_000).fill(Error);
  start();
  video.start();
  for (let count = 0; count < 5; count += 1) {
    for (let pauses = 0; pauses < 50; pauses += 1) {
      video.pause();
      video.start();
    }
    await passAndAnswer(300_000);
  }
  hide();
  const beacon = (await beacons.at(-1).body.text()).split("\n").map(parse);
  assert.equal(beacon.length, 100);
  responses = [];
  requests = [];
  video.pause();
  for (let count = 0; count < 6; count += 1) await passAndAnswer(300_000);
  const sent = requests.flatMap((request) => request.lines.map(({ sn }) => Number(sn)));
  assert.equal(sent.length, 300);
  assert.ok(requests.every(({ body, lines }) => lines.length <= 100 && body.length < 60_000));
  // In order, up to the line of the last pause.
  assert.deepEqual(sent, Array.from({ length: 300 }, (_, index) => sent[0] + index));
  assert.equal(requests.at(-1).lines.at(-1).sta, "a");
});
