/**
 * Screen that flashes and beeps once a second, for a tenth of a second, by one clock. Pages get it by
 * an import, or as a script that runs before theirs, and call `flashingScreen`.
 */

/** Length of the side of the squares of noise, in pixels. */
const GRAIN = 8;
/** Squares in the corner, where tests look: one flashes, one tells the time since the last beep. */
const SQUARE = 64;
/** Grey of the second square when it beeps, and by how much lighter it is a second later. */
const GREY = 40;
const LIGHTER = 160;

/** Return a canvas of grey noise, one and a half times as large. */
function noiseOf(width, height) {
  const noise = new OffscreenCanvas(1.5 * width, 1.5 * height);
  const context = noise.getContext("2d");
  for (let x = 0; x < noise.width; x += GRAIN) {
    for (let y = 0; y < noise.height; y += GRAIN) {
      context.fillStyle = `rgb(0 0 ${Math.floor(Math.random() * 256)})`;
      context.fillRect(x, y, GRAIN, GRAIN);
    }
  }
  return noise;
}

globalThis.flashingScreen = async ({
  withSound = true,
  isStill = false,
  isNoisy = false,
  colour = "navy",
  width = 640,
  height = 360,
} = {}) => {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  const noise = isNoisy && noiseOf(width, height);
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
    const isWhite = phase < 0.1 && audio.currentTime >= first && !isStill;
    if (noise) {
      const [x, y] = [0.5 * width, 0.5 * height].map((most) => -Math.floor(Math.random() * most));
      context.drawImage(noise, x, y);
    }
    context.fillStyle = isWhite ? "white" : colour;
    context.fillRect(0, 0, noise ? SQUARE : width, noise ? SQUARE : height);
    if (!noise) return;
    context.fillStyle = `hsl(0 0% ${(100 * (GREY + LIGHTER * phase)) / 255}%)`;
    context.fillRect(SQUARE, 0, SQUARE, SQUARE);
  };
  draw();
  if (!isStill) setInterval(draw, noise ? 1000 / 60 : 10);
  const stream = canvas.captureStream(60);
  if (withSound) for (const track of destination.stream.getAudioTracks()) stream.addTrack(track);
  const resize = (newWidth) => {
    canvas.width = newWidth;
    draw();
  };
  return Object.assign(stream, { resize });
};
