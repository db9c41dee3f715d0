/**
 * Bundles src/ and css/ into dist/ with content-hashed names, and writes dist/manifest.json
 * (logical name -> hashed name) last, so that a manifest always describes a whole build.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const dist = path.join(here, "dist");

const ENTRY_POINTS = {
  app: "src/main.js",
  style: "css/main.css",
  // Of one kind of page each, which links it itself.
  api: "css/api.css",
  captions: "css/captions.css",
  cuts: "css/cuts.css",
  "multi-select": "css/multi-select.css",
  player: "css/player.css",
  problem: "css/problem.css",
  recording: "css/recording.css",
  settings: "css/settings.css",
  series: "css/series.css",
  statistics: "css/statistics.css",
  table: "css/table.css",
  upload: "css/upload.css",
  "upload-list": "css/upload-list.css",
  watch: "css/watch.css",
  workshop: "css/workshop.css",
};
/** Workers of the pages that upload and record, started by their addresses. */
const WORKERS = {
  preflight: "src/preflight/file-facts.js",
  repack: "src/repack/worker.js",
  spool: "src/recording/spool-worker.js",
};

/** Bundles entry points; what is imported on demand becomes chunks of their own. */
function bundleOf(/** @type {Record<string, string>} */ entryPoints) {
  return build({
    absWorkingDir: here,
    entryPoints,
    outdir: dist,
    entryNames: "[name]-[hash]",
    chunkNames: "chunk-[name]-[hash]",
    assetNames: "[name]-[hash]",
    loader: { ".woff2": "file" },
    bundle: true,
    splitting: true,
    format: "esm",
    minify: true,
    target: ["chrome116", "firefox124", "safari17.4"],
    // Packages look for Node, for which the bundle of every page would get a helper.
    define: { require: "undefined" },
    legalComments: "linked",
    metafile: true,
    logLevel: "warning",
  });
}

/** Bundles pages and workers apart, so that no page loads what a worker needs of a package. */
async function bundle() {
  const { metafile: pages } = await bundleOf(ENTRY_POINTS);
  const { metafile: workers } = await bundleOf(WORKERS);
  await writeTexts(pages);
  /** @type {Record<string, string>} */
  const manifest = {};
  for (const [file, output] of Object.entries({ ...pages.outputs, ...workers.outputs })) {
    const { name, ext } = path.parse(file);
    // Only what a template can name; chunks are named by the bundle itself.
    if (ext !== ".woff2" && (!output.entryPoint || name.startsWith("chunk-"))) continue;
    manifest[name.replace(/-[A-Z0-9]{8}$/, "") + ext] = path.basename(file);
  }
  return manifest;
}

/**
 * Writes the texts of each script that a page loads by itself, in each language, and messages.json:
 * the names of these files by language, with * for the script. The hash is that of a language.
 */
async function writeTexts(/** @type {import("esbuild").Metafile} */ { inputs }) {
  const source = path.join(here, "texts.json");
  const languages = existsSync(source) ? JSON.parse(await readFile(source, "utf8")) : {};
  const scripts = scriptsOf(inputs);
  /** @type {Record<string, string>} */
  const names = {};
  for (const [language, { plurals, files }] of Object.entries(languages)) {
    const content = Object.entries(scripts).map(([script, sources]) => {
      const texts = Object.assign({}, ...sources.map((file) => files[file]));
      return /** @type {const} */ ([script, JSON.stringify({ plurals, texts })]);
    });
    const hash = hashOf(JSON.stringify(content));
    names[language] = `messages-*-${language}-${hash}.json`;
    for (const [script, json] of content) {
      await writeFile(path.join(dist, names[language].replace("*", script)), json);
    }
  }
  await writeFile(path.join(dist, "messages.json"), JSON.stringify(names));
}

/**
 * Returns the source files of each script that a page loads by itself, by its path below src/, with
 * a hyphen for the slash. Files of the script of every page are in that one alone.
 * @param {import("esbuild").Metafile["inputs"]} inputs @returns {Record<string, string[]>}
 */
function scriptsOf(inputs) {
  const everyPages = filesFrom(inputs, "src/main.js", false);
  /** @type {Record<string, string[]>} */
  const scripts = { main: everyPages };
  for (const { path: file, kind } of inputs["src/main.js"]?.imports ?? []) {
    if (kind !== "dynamic-import") continue;
    const name = file.replace("src/", "").replace(".js", "").replace("/", "-");
    scripts[name] = filesFrom(inputs, file, true).filter((own) => !everyPages.includes(own));
  }
  return scripts;
}

/**
 * Returns a file and all that it imports, also on demand if `isWhole`.
 * @param {import("esbuild").Metafile["inputs"]} inputs @param {string} file
 * @param {boolean} isWhole @param {string[]} found
 */
function filesFrom(inputs, file, isWhole, found = []) {
  if (found.includes(file) || !file.startsWith("src/")) return found;
  found.push(file);
  for (const { path: imported, kind } of inputs[file]?.imports ?? []) {
    if (isWhole || kind !== "dynamic-import") filesFrom(inputs, imported, isWhole, found);
  }
  return found;
}

/** @param {string | Buffer} content */
function hashOf(content) {
  return createHash("sha256").update(content).digest("hex").slice(0, 8).toUpperCase();
}

/** Copies the images with the hash of their content in the name. */
async function copyImages() {
  /** @type {Record<string, string>} */
  const manifest = {};
  for (const file of (await readdir(path.join(here, "img"))).sort()) {
    const content = await readFile(path.join(here, "img", file));
    const hash = hashOf(content);
    const { name, ext } = path.parse(file);
    manifest[file] = `${name}-${hash}${ext}`;
    await writeFile(path.join(dist, manifest[file]), content);
  }
  return manifest;
}

/** Licenses of what may be given away only with them, by their names in dist/. */
const LICENSES = {
  "aac-encoder-license.txt": "node_modules/@mediabunny/aac-encoder/LICENSE",
  "ffmpeg-license.txt": "licenses/ffmpeg.txt",
  "geist-license.txt": "node_modules/@fontsource-variable/geist/LICENSE",
};

async function copyLicenses() {
  for (const [name, source] of Object.entries(LICENSES)) {
    await writeFile(path.join(dist, name), await readFile(path.join(here, source)));
  }
}

/** Lays a compressed copy beside each file that is sent often and shrinks. */
async function compress() {
  for (const file of await readdir(dist)) {
    if (!/\.(js|css|json|svg)$/.test(file)) continue;
    const content = await readFile(path.join(dist, file));
    await writeFile(path.join(dist, `${file}.br`), await promisify(brotliCompress)(content));
    await writeFile(path.join(dist, `${file}.gz`), await promisify(gzip)(content, { level: 9 }));
  }
}

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
const manifest = { ...(await bundle()), ...(await copyImages()) };
await copyLicenses();
await compress();
await writeFile(path.join(dist, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
