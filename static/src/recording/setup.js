/**
 * Choice of what is recorded: screen, camera and microphone, each opened by its button. The browser
 * remembers which devices were chosen last.
 */

import { readStored, writeStored } from "../browser-storage.js";
import { announce, element, setText } from "../dom.js";
import { listDevices, openCamera, openMicrophone, openScreen } from "./sources.js";
import { sourceErrorText } from "./texts.js";

/** Key of the devices that were chosen last. */
const CHOSEN = "portal.recording.devices";

/** @typedef {"screen" | "camera" | "microphone"} Kind */
/** @typedef {Record<Kind, MediaStream | null>} Streams */

export const KINDS = /** @type {const} */ (["screen", "camera", "microphone"]);

export class Setup {
  /** @type {Streams} */
  streams = { screen: null, camera: null, microphone: null };

  /**
   * @param {HTMLElement} root with a part for each kind
   * @param {(kind: Kind, hasEnded: boolean) => void} onChange called when a stream was opened or
   *   closed, or has ended by itself
   * @param {AbortSignal} signal
   */
  constructor(root, onChange, signal) {
    this.root = root;
    this.onChange = onChange;
    this.frames = /** @type {HTMLSelectElement} */ (element(root, "[name=frames]"));
    this.sound = /** @type {HTMLInputElement} */ (element(root, "[name=sound]"));
    this.frames.value = String(readStored(CHOSEN)?.frames ?? 30);
    for (const kind of KINDS) {
      const part = this.#part(kind);
      const toggle = element(part, "button");
      toggle.addEventListener("click", () => this.#toggle(kind), { signal });
      part.querySelector("select")?.addEventListener("change", () => this.#open(kind), { signal });
    }
    navigator.mediaDevices.addEventListener("devicechange", () => this.#listDevices(), { signal });
    signal.addEventListener("abort", () => this.close());
    this.#listDevices();
  }

  get hasPicture() {
    return Boolean(this.streams.screen || this.streams.camera);
  }

  get hasSound() {
    const { screen, microphone } = this.streams;
    return [screen, microphone].some((stream) => stream?.getAudioTracks().length);
  }

  /** @returns {import("./recorder.js").Sources} */
  get sources() {
    const framesPerSecond = this.frames.value === "60" ? 60 : 30;
    return { ...this.streams, framesPerSecond };
  }

  /** Release all devices. */
  close() {
    for (const kind of KINDS) this.#set(kind, null);
  }

  /** @param {Kind} kind */
  async #toggle(kind) {
    if (this.streams[kind]) this.#set(kind, null);
    else await this.#open(kind);
  }

  /** Ask for a source, and remember its device. @param {Kind} kind */
  async #open(kind) {
    this.#showError(kind, "");
    try {
      const stream = await this.#request(kind);
      const [track] = kind === "microphone" ? stream.getAudioTracks() : stream.getVideoTracks();
      track?.addEventListener("ended", () => {
        if (this.streams[kind] === stream) this.#set(kind, null, true);
      });
      this.#set(kind, stream);
      const deviceId = track?.getSettings().deviceId;
      writeStored(CHOSEN, { ...readStored(CHOSEN), frames: this.frames.value, [kind]: deviceId });
      await this.#listDevices();
    } catch (error) {
      const text = sourceErrorText(kind, error);
      this.#showError(kind, text);
      announce(text);
    }
  }

  /** @param {Kind} kind @returns {Promise<MediaStream>} */
  #request(kind) {
    const { framesPerSecond } = this.sources;
    if (kind === "screen") return openScreen({ withSound: this.sound.checked, framesPerSecond });
    const chosen = this.#select(kind)?.value || readStored(CHOSEN)?.[kind];
    return kind === "camera" ? openCamera(chosen, framesPerSecond) : openMicrophone(chosen);
  }

  /** @param {Kind} kind @param {MediaStream | null} stream @param {boolean} [hasEnded] by itself */
  #set(kind, stream, hasEnded = false) {
    const before = this.streams[kind];
    if (before === stream) return;
    this.streams[kind] = stream;
    for (const track of before?.getTracks() ?? []) track.stop();
    const part = this.#part(kind);
    element(part, "button").setAttribute("aria-pressed", String(stream !== null));
    this.onChange(kind, hasEnded);
  }

  /** Fill the menus. Browsers name devices only after one was allowed. */
  async #listDevices() {
    const { cameras, microphones } = await listDevices();
    this.#fill("camera", cameras);
    this.#fill("microphone", microphones);
  }

  /** @param {Kind} kind @param {import("./sources.js").Device[]} devices */
  #fill(kind, devices) {
    const select = this.#select(kind);
    if (!select) return;
    const chosen = this.#deviceOf(kind) ?? readStored(CHOSEN)?.[kind] ?? "";
    select.replaceChildren(...devices.map(({ label, deviceId }) => new Option(label, deviceId)));
    if (devices.some(({ deviceId }) => deviceId === chosen)) select.value = chosen;
    select.hidden = devices.length === 0;
  }

  /** Return the id of the device in use. @param {Kind} kind */
  #deviceOf(kind) {
    return this.streams[kind]?.getTracks()[0]?.getSettings().deviceId;
  }

  /** @param {Kind} kind */
  #part(kind) {
    return element(this.root, `[data-source=${kind}]`);
  }

  /** @param {Kind} kind */
  #select(kind) {
    return this.#part(kind).querySelector("select");
  }

  /** @param {Kind} kind @param {string} text */
  #showError(kind, text) {
    setText(this.#part(kind), "[data-source-error]", text);
  }
}
