/** Records with the recorder from made-up sources, for tests. */

import * as recording from "../../static/src/recording/recorder.js";

const WIDTH = 640;
const HEIGHT = 360;

/** Screen that flashes and beeps once a second, for a tenth of a second, by one clock. */
async function flashingScreen({ withSound = true, isStill = false, colour = "navy" } = {}) {
  const canvas = Object.assign(document.createElement("canvas"), { width: WIDTH, height: HEIGHT });
  const context = canvas.getContext("2d");
  const audio = new AudioContext({ sampleRate: 48_000 });
  await audio.resume();
  const destination = audio.createMediaStreamDestination();
  const tone = new OscillatorNode(audio, { frequency: 1000 });
  const gain = new GainNode(audio, { gain: 0 });
  tone.connect(gain).connect(destination);
  tone.start();
  const first = Math.ceil(audio.currentTime) + 0.5;
  for (let at = first; at < first + 900 && !isStill; at += 1) {
    gain.gain.setValueAtTime(0.5, at);
    gain.gain.setValueAtTime(0, at + 0.1);
  }
  const draw = () => {
    const phase = (((audio.currentTime - first) % 1) + 1) % 1;
    context.fillStyle = phase < 0.1 && audio.currentTime >= first && !isStill ? "white" : colour;
    context.fillRect(0, 0, WIDTH, HEIGHT);
  };
  draw();
  if (!isStill) setInterval(draw, 10);
  const stream = canvas.captureStream(60);
  if (withSound) for (const track of destination.stream.getAudioTracks()) stream.addTrack(track);
  const resize = (width) => {
    canvas.width = width;
    draw();
  };
  return Object.assign(stream, { resize });
}

/** Open sources by their options. */
async function openSources({ screen, display, camera, microphone }) {
  return {
    screen: screen ? await flashingScreen(screen) : display ? await recording.openScreen({ withSound: true }) : null,
    camera: camera ? await recording.openCamera() : null,
    microphone: microphone ? await recording.openMicrophone() : null,
  };
}

/** Start a recording of these sources; what it writes and says is kept. */
async function record({ screen = null, camera = null, microphone = null, framesPerSecond = 30, sink }) {
  const chunks = [];
  const events = [];
  const write = async (bytes) => {
    chunks.push(bytes.slice());
    await sink?.(chunks);
  };
  const recorder = new recording.Recorder({ screen, camera, microphone, framesPerSecond }, write);
  for (const type of ["warning", "failed"]) {
    recorder.addEventListener(type, ({ detail }) =>
      events.push({ type, ...(type === "failed" ? { message: detail.message } : detail) }),
    );
  }
  const levels = [];
  recorder.addEventListener("level", ({ detail }) => levels.push(detail));
  await recorder.start();
  return { recorder, chunks, events, levels };
}

/** Wait until a recording has this length. */
async function reach(recorder, duration_s) {
  while (recorder.duration_s < duration_s) await wait(20);
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Return what was written, as Base64. */
async function bytesOf(chunks) {
  const reader = new FileReader();
  reader.readAsDataURL(new Blob(chunks));
  await new Promise((resolve) => reader.addEventListener("load", resolve));
  return reader.result.split(",")[1] ?? "";
}

Object.assign(globalThis, { ...recording, flashingScreen, openSources, record, reach, wait, bytesOf });
