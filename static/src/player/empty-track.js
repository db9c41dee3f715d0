/**
 * The address of a WebVTT file without a cue. hls.js gives it to the tracks it makes, as a data:
 * address, which the content security policy doesn't allow for media; build.mjs puts this one in
 * its place.
 */
export const emptyTrack = URL.createObjectURL(new Blob(["WEBVTT\n\n"], { type: "text/vtt" }));
