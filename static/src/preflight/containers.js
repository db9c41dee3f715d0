/**
 * Kinds of files that the portal does not accept, detected by first bytes or name. Pure; for a
 * worker, which has no translations.
 */

/** @typedef {"video" | "audio" | "other"} Kind */
/** File format; `name` has its English article. @typedef {{ name: string, kind: Kind }} Container */

/** Number of bytes that every signature fits into: two packets of a transport stream. */
export const SIGNATURE_BYTES = 400;

const ANY_OFFSET = -1;
/** Signatures by offset; the first one that matches completely counts. */
const SIGNATURES =
  /** @type {[name: string, kind: Kind, ...marks: [at: number, text: string][]][]} */ ([
    ["a WebM", "video", [0, "\x1aE\xdf\xa3"], [ANY_OFFSET, "webm"]],
    ["a Matroska", "video", [0, "\x1aE\xdf\xa3"]],
    ["an AVI", "video", [0, "RIFF"], [8, "AVI "]],
    ["a WAV", "audio", [0, "RIFF"], [8, "WAVE"]],
    ["a WebP", "other", [0, "RIFF"], [8, "WEBP"]],
    ["a Windows Media", "video", [0, "0&\xb2u\x8ef\xcf\x11"]],
    ["a Flash Video", "video", [0, "FLV\x01"]],
    ["an MXF", "video", [0, "\x06\x0e+4"]],
    ["an MPEG transport stream", "video", [0, "G"], [188, "G"]],
    ["an MPEG transport stream", "video", [4, "G"], [196, "G"]],
    ["an MPEG program stream", "video", [0, "\0\0\x01\xba"]],
    ["an Ogg", "video", [0, "OggS"], [ANY_OFFSET, "theora"]],
    ["an Ogg", "audio", [0, "OggS"]],
    ["a FLAC", "audio", [0, "fLaC"]],
    ["an MP3", "audio", [0, "ID3"]],
    ["an MP3", "audio", [0, "\xff\xfb"]],
    ["an AAC", "audio", [0, "\xff\xf1"]],
    ["a HEIF", "other", [4, "ftyphei"]],
    ["an AVIF", "other", [4, "ftypavif"]],
    ["a JPEG", "other", [0, "\xff\xd8\xff"]],
    ["a PNG", "other", [0, "\x89PNG"]],
    ["a GIF", "other", [0, "GIF8"]],
    ["a PDF", "other", [0, "%PDF"]],
    ["a ZIP", "other", [0, "PK\x03\x04"]],
  ]);

/**
 * Formats by extension. `portal publish` reads all of them.
 * @type {Record<string, Container>}
 */
export const EXTENSIONS = Object.fromEntries(
  /** @type {[string, Kind, string][]} */ ([
    ["a WebM", "video", "webm"],
    ["a Matroska", "video", "mkv"],
    ["an AVI", "video", "avi"],
    ["a Windows Media", "video", "wmv asf"],
    ["a Flash Video", "video", "flv"],
    ["an MXF", "video", "mxf"],
    ["an MPEG transport stream", "video", "ts mts m2ts"],
    ["an MPEG program stream", "video", "mpg mpeg vob"],
    ["a 3GP", "video", "3gp 3g2"],
    ["an Ogg", "video", "ogv"],
    ["an Ogg", "audio", "ogg oga opus"],
    ["an MP3", "audio", "mp3"],
    ["an MPEG-4 audio", "audio", "m4a m4b"],
    ["an AAC", "audio", "aac"],
    ["a WAV", "audio", "wav"],
    ["an AIFF", "audio", "aif aiff"],
    ["a FLAC", "audio", "flac"],
    ["a Windows Media audio", "audio", "wma"],
  ]).flatMap(([name, kind, extensions]) =>
    extensions.split(" ").map((extension) => [extension, { name, kind }]),
  ),
);

/** Formats that mediabunny reads. */
const REPACKABLE = new Set([
  ...["a WebM video", "a Matroska video", "an MPEG transport stream video"],
  ...["an Ogg audio", "an MP3 audio", "an MPEG-4 audio audio", "an AAC audio"],
  ...["a WAV audio", "a FLAC audio"],
]);

/**
 * Return the format of a file by its signature.
 * @param {Uint8Array} bytes first bytes of the file @returns {Container | null} null if unknown
 */
export function detectContainer(bytes) {
  const text = String.fromCharCode(...bytes);
  const match = SIGNATURES.find(([, , ...patterns]) =>
    patterns.every(([at, pattern]) =>
      at === ANY_OFFSET ? text.includes(pattern) : text.startsWith(pattern, at),
    ),
  );
  return match ? { name: match[0], kind: match[1] } : null;
}

/** Return the format of a file by its name. @param {string} fileName @returns {Container | null} */
export const containerByName = (fileName) => EXTENSIONS[extensionOf(fileName)] ?? null;

/**
 * Return the format of a file that the upload page repacks to MP4, by its name.
 * @param {string} fileName @returns {Container | null} null for any other file
 */
export function repackableByName(fileName) {
  const container = containerByName(fileName);
  return container && REPACKABLE.has(`${container.name} ${container.kind}`) ? container : null;
}

/**
 * Return the extension in lower case, without the dot.
 * @param {string} fileName @returns {string}
 */
export const extensionOf = (fileName) => fileName.split(".").pop()?.toLowerCase() ?? "";
