/** Screen, camera and microphone of a computer, and the menus' devices. */

/** @typedef {{ deviceId: string, label: string }} Device */

/**
 * Ask for a screen, window or tab, with its sound where the browser and the person share it.
 * @param {{ withSound: boolean, framesPerSecond?: 30 | 60 }} options
 * @returns {Promise<MediaStream>}
 */
export function openScreen({ withSound, framesPerSecond = 30 }) {
  // Sound of a film or of music must not be altered like speech.
  const sound = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  return navigator.mediaDevices.getDisplayMedia({
    video: {
      frameRate: { ideal: framesPerSecond, max: framesPerSecond },
      width: { max: 1920 },
      height: { max: 1080 },
    },
    audio: withSound && sound,
    // Members that TypeScript's library does not have yet.
    ...{ selfBrowserSurface: "exclude", surfaceSwitching: "include" },
    ...{ systemAudio: withSound ? "include" : "exclude" },
  });
}

/**
 * Ask for a camera. Another one is opened if the device is gone.
 * @param {string} [deviceId] @param {30 | 60} framesPerSecond @returns {Promise<MediaStream>}
 */
export function openCamera(deviceId, framesPerSecond = 30) {
  return navigator.mediaDevices.getUserMedia({
    video: {
      ...(deviceId && { deviceId: { ideal: deviceId } }),
      frameRate: { ideal: framesPerSecond },
      width: { ideal: 1920, max: 1920 },
      height: { ideal: 1080, max: 1080 },
    },
  });
}

/**
 * Ask for a microphone. Another one is opened if the device is gone.
 * @param {string} [deviceId] @returns {Promise<MediaStream>}
 */
export function openMicrophone(deviceId) {
  return navigator.mediaDevices.getUserMedia({
    audio: deviceId ? { deviceId: { ideal: deviceId } } : true,
  });
}

/**
 * List the devices. Those without a name are left out: browsers name them only after a permission.
 * @returns {Promise<{ cameras: Device[], microphones: Device[] }>}
 */
export async function listDevices() {
  const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
  const named = devices.filter(({ deviceId, label }) => deviceId && label);
  const ofKind = (/** @type {MediaDeviceKind} */ kind) =>
    named
      .filter((device) => device.kind === kind)
      .map(({ deviceId, label }) => ({ deviceId, label }));
  return { cameras: ofKind("videoinput"), microphones: ofKind("audioinput") };
}
