/**
 * Page that records: choice of sources, recording, and the details of the recorded video. All that
 * is recorded goes to a file of this browser first, and from there to storage.
 */

import { announce, closest, confirmLeaving, element, setText } from "../dom.js";
import { formatClock } from "../format.js";
import { gettext } from "../messages.js";
import { allowSignInPrompt } from "../people/sign-in-again.js";
import { Api } from "../publishing/api.js";
import { describeTransferError } from "../publishing/failures.js";
import { ask } from "../question.js";
import { NoResponse } from "../requests.js";
import { BubbleFrame } from "./bubble.js";
import { capabilities, Recorder } from "./recorder.js";
import { discardSaved, Recording } from "./recording.js";
import { findUnfinished } from "./recovery.js";
import { Result } from "./result.js";
import { KINDS, Setup } from "./setup.js";
import * as texts from "./texts.js";
import { createItem, pressedButton } from "./unfinished-item.js";
import { Warnings } from "./warnings.js";

const TICK_MS = 250;
/** How often the space that is left is looked up. */
const SPACE_MS = 5_000;
const COUNTDOWN_S = 3;
/** What is left to a portal's limit of sizes when a recording stops: more than what is under way. */
const MARGIN_BYTES = 32 * 2 ** 20;

/** @typedef {"setup" | "countdown" | "recording" | "paused" | "sending" | "details" | "done"} Stage */

/** @param {HTMLElement} root @param {AbortSignal} signal */
export async function startRecordPage(root, signal) {
  const can = await capabilities();
  // Insecure pages have none of these.
  const isAble = (can.screen || can.camera) && can.video && navigator.locks && navigator.storage;
  if (isAble) new RecordPage(root, can, signal);
  else {
    const text = isSecureContext
      ? gettext("This browser can’t record. Use a current Chrome, Edge, Firefox or Safari.")
      : gettext("Browsers record only on pages with https. Ask the person who runs this portal.");
    setText(root, "[data-unable-text]", text);
    element(root, "[data-unable]").hidden = false;
  }
  root.dataset.ready = "";
}

class RecordPage {
  /** @type {Stage} */
  #stage = "setup";
  /** Shows the sources and records them. @type {Recorder | null} */
  #recorder = null;
  /** @type {Recording | null} */
  #recording = null;
  /** Whether the recording has sound, so that its microphone can be replaced. */
  #hasSound = false;
  /** Length of a recording of an earlier visit, or one that has ended. */
  #duration_s = 0;
  #space_ms = 0;

  /**
   * @param {HTMLElement} root @param {import("./recorder.js").Capabilities} can
   * @param {AbortSignal} signal
   */
  constructor(root, can, signal) {
    this.root = root;
    this.signal = signal;
    const { spoolUrl = "", limits = "" } = root.dataset;
    const urls = /** @type {Result["urls"]} */ ({ ...root.dataset });
    /** @type {{ size_bytes: number | null, duration_s: number | null }} */
    this.limits = JSON.parse(limits);
    this.tools = { api: new Api(urls), spoolUrl };
    this.preview = /** @type {HTMLVideoElement} */ (element(root, "[data-preview]"));
    this.question = /** @type {HTMLDialogElement} */ (element(root, "dialog"));
    this.warnings = new Warnings(element(root, "[data-warnings]"));
    element(root, "[data-able]").hidden = false;
    const sources = element(root, "[data-sources]");
    for (const kind of KINDS) element(sources, `[data-source=${kind}]`).hidden = !can[kind];
    this.setup = new Setup(sources, (...change) => this.#handleSource(...change), signal);
    const picture = element(root, "[data-picture]");
    this.bubble = new BubbleFrame(
      element(picture, "[data-bubble]"),
      picture,
      (bubble) => {
        if (this.#recorder) this.#recorder.bubble = bubble;
      },
      signal,
    );
    this.result = new Result(root, urls, signal);
    this.#listen();
    findUnfinished((unfinished) => this.#offerUnfinished(unfinished), signal);
    this.#enter("setup");
  }

  #listen() {
    const { root, signal } = this;
    root.addEventListener("click", (event) => this.#handleClick(event), { signal });
    document.addEventListener("keydown", (event) => this.#handleKey(event), { signal });
    this.preview.addEventListener("resize", () => this.#fitPicture(), { signal });
    confirmLeaving(() => this.#holdsWork, signal);
    const timer = setInterval(() => this.#tick(), TICK_MS);
    signal.addEventListener("abort", () => {
      clearInterval(timer);
      this.#recorder?.stop();
    });
  }

  get #holdsWork() {
    const isBusy = ["countdown", "recording", "paused", "sending"].includes(this.#stage);
    return isBusy || (this.#stage === "details" && this.result.holdsWork);
  }

  /** Show the parts of a stage. @param {Stage} stage */
  #enter(stage) {
    this.#stage = stage;
    this.root.dataset.stage = stage;
    const focused = document.activeElement;
    for (const part of this.root.querySelectorAll("[data-in]")) {
      if (!(part instanceof HTMLElement)) continue;
      part.hidden = !part.dataset.in?.split(" ").includes(stage);
    }
    this.#drawSources();
    this.#draw();
    if (!(focused instanceof HTMLElement) || focused.checkVisibility()) return;
    const next = [...this.root.querySelectorAll("[data-action]")].find((button) =>
      button.checkVisibility(),
    );
    if (next instanceof HTMLElement) next.focus();
  }

  /** @param {Event} event */
  #handleClick({ target }) {
    const button = closest(target, "[data-action]");
    if (!button || this.result.details.contains(button)) return;
    allowSignInPrompt();
    const actions = /** @type {Record<string, () => unknown>} */ ({
      record: () => this.#record(),
      cancel: () => this.#cancel(),
      stop: () => this.#stop(),
      pause: () => this.#pause(),
      resume: () => this.#resume(),
      over: () => this.#startOver(),
      hide: () => this.#toggleBubble(),
      again: () => this.#recording?.tryAgain(),
      publish: () => this.result.details.submit(),
      discard: () => this.#discard(),
    });
    actions[button.dataset.action ?? ""]?.();
  }

  /** Press the button of a key, unless the key is for a field. @param {KeyboardEvent} event */
  #handleKey(event) {
    const { key, target, ctrlKey, metaKey, altKey, repeat } = event;
    if (ctrlKey || metaKey || altKey || repeat) return;
    if (closest(target, "input, select, textarea, dialog")) return;
    const buttons = this.root.querySelectorAll(`[data-key="${CSS.escape(key.toLowerCase())}"]`);
    const button = [...buttons].find((candidate) => candidate.checkVisibility());
    if (!(button instanceof HTMLElement)) return;
    event.preventDefault();
    button.click();
  }

  /**
   * Show or record other sources. The recorder itself warns of those that have ended.
   * @param {import("./setup.js").Kind} kind @param {boolean} hasEnded
   */
  #handleSource(kind, hasEnded) {
    if (this.#stage === "setup") this.#show();
    else if (kind === "microphone" && !hasEnded) {
      this.#recorder?.replaceMicrophone(this.setup.streams.microphone);
    } else if (!this.setup.hasPicture) {
      this.#stop(kind === "camera" ? texts.CAMERA_ENDED : texts.SCREEN_ENDED);
    }
    this.#drawSources();
  }

  /** Show the chosen sources. A recorder takes others only at its beginning. */
  #show() {
    this.#recorder?.stop();
    this.#recorder = null;
    this.warnings.clear();
    this.preview.srcObject = null;
    if (this.setup.hasPicture) {
      const recorder = new Recorder(this.setup.sources, async (bytes) => {
        await this.#keep(bytes, recorder.duration_s);
      });
      const level = /** @type {HTMLMeterElement} */ (element(this.root, "meter"));
      recorder.addEventListener("level", (event) => {
        level.value = /** @type {CustomEvent<number>} */ (event).detail;
      });
      recorder.addEventListener("warning", (event) => {
        const { detail } = /** @type {CustomEvent} */ (event);
        if (recorder === this.#recorder) this.#handleWarning(detail);
      });
      recorder.addEventListener("failed", () => this.#stop(texts.RECORDER_FAILED));
      recorder.bubble = this.bubble.bubble;
      this.preview.srcObject = recorder.preview;
      this.#recorder = recorder;
    }
    this.#draw();
  }

  /** Show a warning, unless the recording ends with its picture. @param {import("./recorder.js").Warning} warning */
  #handleWarning({ kind, device, isOver }) {
    if (!this.setup.hasPicture) return;
    this.warnings.set(`${kind} ${device}`, isOver ? "" : texts.warningText({ kind, device }));
  }

  /** Keep bytes of the film. @param {Uint8Array} bytes @param {number} duration_s */
  async #keep(bytes, duration_s) {
    try {
      await this.#recording?.write(bytes, duration_s);
    } catch (error) {
      this.#stop(texts.DISK_FULL);
      throw error;
    }
  }

  async #record() {
    if (!this.setup.hasPicture) {
      this.warnings.set("choice", texts.NO_PICTURE);
      return;
    }
    this.warnings.set("choice", "");
    this.warnings.set("end", "");
    this.#enter("countdown");
    const now = Date.now();
    const name = `recording-${new Date(now).toISOString().slice(0, 19).replaceAll(":", "-")}.mp4`;
    try {
      this.#recording = await Recording.begin(name, this.tools);
    } catch {
      // Private windows of some browsers keep no files.
      this.#enter("setup");
      this.warnings.set("end", texts.NO_FILES);
      return;
    }
    const recording = this.#recording;
    await this.#countDown();
    if (this.#recording !== recording) return;
    if (!(await this.#startRecorder())) {
      await this.#cancel();
      this.warnings.set("end", texts.NOT_STARTED);
      return;
    }
    this.#hasSound = this.setup.hasSound;
    recording.send(() => this.#draw());
    this.#enter("recording");
  }

  /** Start the recorder, and return whether a picture comes. */
  async #startRecorder() {
    // A picture can end while the page counts down.
    if (!this.setup.hasPicture) return false;
    try {
      await this.#recorder?.start();
    } catch {
      return false;
    }
    return true;
  }

  /** Count down, until the end or until cancelled. */
  async #countDown() {
    for (let left = COUNTDOWN_S; left > 0 && this.#stage === "countdown"; left -= 1) {
      setText(this.root, "[data-countdown]", String(left));
      announce(String(left));
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  async #cancel() {
    const recording = this.#recording;
    this.#recording = null;
    this.#enter("setup");
    await recording?.discard();
    this.#show();
  }

  #pause() {
    this.#recorder?.pause();
    this.#enter("paused");
  }

  #resume() {
    this.#recorder?.resume();
    this.#enter("recording");
  }

  async #startOver() {
    if (!(await this.#agrees(texts.startOverQuestion()))) return;
    await this.#recorder?.stop().catch(() => {});
    await this.#cancel();
    await this.#record();
  }

  #toggleBubble() {
    this.bubble.set({ isHidden: !this.bubble.bubble.isHidden });
    this.#drawSources();
  }

  /** End the recording. @param {string} [reason] why it ends by itself */
  async #stop(reason = "") {
    const recording = this.#recording;
    if (!recording || !["recording", "paused"].includes(this.#stage)) return;
    this.warnings.clear();
    this.warnings.set("end", texts.endText(reason, false));
    this.#enter("sending");
    await this.#recorder?.stop().catch(() => {});
    this.#duration_s = this.#recorder?.duration_s ?? 0;
    this.#recorder = null;
    this.preview.srcObject = null;
    this.setup.close();
    await this.#finish(recording, reason);
  }

  /**
   * Send the rest of a recording, make a video of it for oneself, and publish it with its details.
   * @param {Recording} recording @param {string} [reason] why it has ended by itself
   */
  async #finish(recording, reason = "") {
    const file = await recording.spool.end().catch(() => null);
    if (!file) {
      this.#leave(recording);
      return;
    }
    if (!file.size) {
      await this.#cancel();
      this.warnings.set("end", texts.endText(reason, true));
      return;
    }
    this.result.show(file, recording.saved.name);
    if (!(await recording.sent)) return;
    await this.result.publishForOneself(recording);
    const published = this.result.publish(recording, file);
    this.#enter("details");
    if (!(await published)) return;
    recording.forget();
    this.#enter("done");
  }

  /**
   * Leave a recording whose file can't be ended now; a later visit of the page offers it.
   * @param {Recording | null} recording
   */
  #leave(recording) {
    recording?.leave();
    this.#recording = null;
    this.#enter("setup");
    this.warnings.set("end", texts.NOT_WRITTEN);
  }

  async #discard() {
    const recording = this.#recording;
    if (!recording || !(await this.#agrees(texts.discardQuestion()))) return;
    try {
      await recording.discard();
    } catch (error) {
      this.result.note(describeTransferError(/** @type {Error} */ (error)).join(". "));
      return;
    }
    this.#recording = null;
    this.result.close();
    this.#enter("setup");
  }

  /**
   * Offer to go on with a recording of an earlier visit.
   * @param {import("./recovery.js").Unfinished} unfinished
   */
  async #offerUnfinished(unfinished) {
    const { root, tools } = this;
    const template = element(root, "[data-unfinished-template]");
    const item = createItem(/** @type {HTMLTemplateElement} */ (template), unfinished);
    element(root, "[data-unfinished]").append(item);
    let button = await pressedButton(item);
    while (button === "discard" && !(await this.#agrees(texts.discardQuestion()))) {
      button = await pressedButton(item);
    }
    item.remove();
    if (button === "discard") await discardSaved(unfinished.saved, tools);
    else await this.#continue(unfinished.saved);
  }

  /** Go on with a recording of an earlier visit. @param {import("./saved-recordings.js").Saved} saved */
  async #continue(saved) {
    let recording;
    try {
      recording = await Recording.resume(saved, this.tools);
    } catch {
      this.#leave(null);
      return;
    }
    if (!recording) {
      this.warnings.set("end", texts.TAKEN);
      return;
    }
    this.#recording = recording;
    this.#duration_s = saved.duration_s;
    this.setup.close();
    this.#enter("sending");
    recording.send(() => this.#draw());
    await this.#finish(recording);
  }

  #drawSources() {
    const { screen, camera } = this.setup.streams;
    const isRecording = this.#stage !== "setup";
    const hasBubble = Boolean(screen && camera);
    const hide = element(this.root, "[data-hide]");
    // A camera that fills the picture in place of the screen can be hidden, too.
    hide.hidden = !(camera && this.#recorder?.hasScreen);
    hide.setAttribute("aria-pressed", String(this.bubble.bubble.isHidden));
    element(this.root, "[data-bubble]").hidden = !hasBubble;
    element(this.root, "[data-bubble-hint]").hidden = !hasBubble;
    element(this.root, "[data-empty]").hidden = this.setup.hasPicture;
    element(this.root, "[data-level]").hidden = !this.#recorder;
    // A recording keeps its picture; only its microphone can be replaced.
    const fixed = ["[data-source=screen]", "[data-source=camera]", "[data-frames]"];
    for (const part of fixed) element(this.root, part).inert = isRecording;
    element(this.root, "[data-source=microphone]").inert = isRecording && !this.#hasSound;
  }

  /** Give the preview the aspect ratio of the film. */
  #fitPicture() {
    const { videoWidth, videoHeight } = this.preview;
    const ratio = videoWidth ? videoWidth / videoHeight : 16 / 9;
    element(this.root, "[data-picture]").style.setProperty("--ratio", String(ratio));
    this.bubble.set({});
  }

  /** Show what changes while it is recorded and sent. */
  #draw() {
    const recording = this.#recording;
    if (!recording) return;
    const progress = {
      size_bytes: recording.spool.size_bytes,
      stored_bytes: recording.stored_bytes,
      sent_bytes: recording.sent_bytes,
      duration_s: this.#recorder?.duration_s ?? this.#duration_s,
      // Without a connection nothing fails until a part is due.
      trouble: recording.trouble ?? (navigator.onLine ? null : new NoResponse("offline")),
    };
    setText(this.root, "[data-clock]", formatClock(Math.floor(progress.duration_s)));
    setText(this.root, "[data-meanwhile]", texts.meanwhileText(progress));
    setText(this.root, "[data-sending]", texts.sendingText(progress));
    const meter = /** @type {HTMLProgressElement} */ (
      element(this.root, "[data-in=sending].progress")
    );
    meter.value = progress.sent_bytes / (progress.size_bytes || 1);
  }

  #tick() {
    if (this.#stage !== "recording" && this.#stage !== "paused") return;
    this.#draw();
    const recording = this.#recording;
    const recorder = this.#recorder;
    if (!recording || !recorder) return;
    const { size_bytes, duration_s } = this.limits;
    const isTooLarge = size_bytes && recording.spool.size_bytes > size_bytes - MARGIN_BYTES;
    const isTooLong = duration_s && recorder.duration_s > duration_s - 1;
    if (isTooLarge || isTooLong) this.#stop(texts.LIMIT_REACHED);
    if (performance.now() < this.#space_ms + SPACE_MS) return;
    this.#space_ms = performance.now();
    const rate_bps = recording.spool.size_bytes / Math.max(recorder.duration_s, 1);
    navigator.storage
      .estimate()
      .then((estimate) => this.warnings.set("space", texts.spaceText(estimate, rate_bps)));
  }

  /** Ask a question, and return whether the answer is yes. @param {texts.Question} question */
  #agrees(question) {
    return ask(this.question, question, this.signal);
  }
}
