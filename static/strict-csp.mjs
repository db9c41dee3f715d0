/**
 * An esbuild plugin that makes the player's libraries keep to a strict content security policy,
 * so that it need not be loosened for them. It changes their source, because neither has an option:
 *
 * - media-chrome 4.19 writes <style> elements into its shadow roots, in the constructors and in its
 *   functions for CSS rules; it takes neither a nonce nor constructed sheets
 *   (https://github.com/muxinc/media-chrome/issues/898, open). Here src/player/shadow-styles.js
 *   fills the shadow roots.
 * - hls.js 1.7 gives each track element that it makes the address `data:,WEBVTT`, for Chrome's menu
 *   and Safari's cues (https://github.com/video-dev/hls.js/issues/2198 and pull request 7515); only
 *   with `renderTextTracksNatively` off it makes none, and then renders no captions either. Here
 *   src/player/empty-track.js has the address.
 *
 * It fails the build when a new version of a library does something it doesn't know.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const PLAYER = path.join(path.dirname(fileURLToPath(import.meta.url)), "src", "player");
const SCHEME = "portal-player:";
const TEMPLATED =
  /(?:this\.shadowRoot\.setHTMLUnsafe \? this\.shadowRoot\.setHTMLUnsafe\(html\) : )?this\.shadowRoot\.innerHTML = (html|this\.constructor\.getTemplateHTML\(attrs\));/g;
const LEFT_OVER = /shadowRoot\.innerHTML|setHTMLUnsafe|template\.content|createElement\("style"\)/;
const RULE_FUNCTIONS = /^function (getOrInsertCSSRule|getCSSRule|insertCSSRule)\([\s\S]*?^\}\n/gm;
const EMPTY_TRACK = "'data:,WEBVTT'";

/** @type {import("esbuild").Plugin} */
export const strictCsp = {
  name: "strict-csp",
  setup(build) {
    build.onResolve({ filter: /^portal-player:/ }, (args) => ({
      path: path.join(PLAYER, args.path.slice(SCHEME.length)),
    }));
    build.onLoad({ filter: /[\\/]media-chrome[\\/]dist[\\/].*\.js$/ }, (args) =>
      loaded(args.path, /utils[\\/]element-utils\.js$/.test(args.path) ? ownRules : ownTemplates),
    );
    build.onLoad({ filter: /[\\/]hls\.js[\\/]dist[\\/]/ }, (args) => loaded(args.path, ownTrack));
  },
};

/**
 * @param {string} file
 * @param {(source: string, file: string) => string} change
 */
async function loaded(file, change) {
  return { contents: change(await readFile(file, "utf8"), file) };
}

/** @param {string} source */
function ownRules(source) {
  const found = source.match(RULE_FUNCTIONS)?.length ?? 0;
  if (found !== 3) throw new Error("media-chrome's functions for CSS rules have changed");
  const names = "getOrInsertCSSRule, getCSSRule, insertCSSRule";
  const rest = source.replace(RULE_FUNCTIONS, "");
  return `import { ${names} } from "${SCHEME}shadow-styles.js";\n${rest}`;
}

/**
 * @param {string} source
 * @param {string} file
 */
function ownTemplates(source, file) {
  const changed = source.replace(TEMPLATED, "fillShadow(this.shadowRoot, $1);");
  if (LEFT_OVER.test(changed)) throw new Error(`media-chrome fills a shadow root anew: ${file}`);
  if (changed === source) return source;
  return `import { fillShadow } from "${SCHEME}shadow-styles.js";\n${changed}`;
}

/**
 * @param {string} source
 * @param {string} file
 */
function ownTrack(source, file) {
  if (source.split(EMPTY_TRACK).length !== 2) throw new Error(`hls.js makes tracks anew: ${file}`);
  const changed = source.replace(EMPTY_TRACK, "emptyTrack");
  return `import { emptyTrack } from "${SCHEME}empty-track.js";\n${changed}`;
}
