/** Which content type a chosen file is uploaded with, judged by its type and its extension. */

/** @type {Record<string, string>} */
const BY_EXTENSION = { mp4: "video/mp4", m4v: "video/mp4", mov: "video/quicktime" };
const ACCEPTED = new Set(Object.values(BY_EXTENSION));

/**
 * @param {{ name: string, type: string }} file
 * @returns {string | null} null when the portal doesn't take such a file
 */
export function contentTypeOf(file) {
  const extension = file.name.split(".").pop()?.toLowerCase() ?? "";
  const byExtension = BY_EXTENSION[extension];
  if (!byExtension) return null;
  if (ACCEPTED.has(file.type)) return file.type;
  // Browsers know few extensions: an empty or odd type (video/x-m4v) says less than the name.
  const isOther = file.type !== "" && !file.type.startsWith("video/");
  return isOther ? null : byExtension;
}
