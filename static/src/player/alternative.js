/**
 * Gives the browser the stream's own address beside what hls.js feeds it. A device that plays for
 * the browser (AirPlay) can't take the segments that arrive here; it asks for the stream itself.
 * Browsers look for it where a managed media source stands among <source> elements.
 */

/** @param {HTMLVideoElement} video @param {string} address */
export function offerAlternative(video, address) {
  if (!video.querySelector("source")) return;
  const source = document.createElement("source");
  source.type = "application/vnd.apple.mpegurl";
  source.src = address;
  video.append(source);
  // hls.js disables it where there's no alternative.
  video.disableRemotePlayback = false;
}
