/** Records with the recorder from made-up sources, for tests. */

import * as recording from "../../static/src/recording/recorder.js";
import "./flashing_screen.mjs";

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

Object.assign(globalThis, { ...recording, openSources, record, reach, wait, bytesOf });
