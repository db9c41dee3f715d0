"""Texts of a page that are not translated, found by the pseudo-language of brackets."""

from collections.abc import Sequence

from playwright.async_api import Page

# Returns the texts and labels of the page that are neither in brackets nor the user's own: titles,
# which have their own direction, texts in another language, codes, times and the given words.
UNTRANSLATED = r"""(words) => {
    const found = new Set();
    const labels = ["aria-label", "aria-description", "aria-valuetext", "title", "placeholder",
        "alt", "data-announce", "data-words", "data-news"];
    const others = "[dir=auto], [translate=no], bdi, [lang], script, style, code, pre, time";
    const isOwn = (element) => element !== document.documentElement && element.matches(others);
    const textOf = (node) => {
        if (node.nodeType === Node.TEXT_NODE) return node.data;
        if (node instanceof Element && isOwn(node)) return " ";
        return [...node.childNodes].map(textOf).join("");
    };
    const count = (text, sign) => text.split(sign).length;
    const isWhole = (text) => count(text, "[") === count(text, "]");
    const check = (text, place) => {
        // Browsers keep the content of <noscript> as a text with tags.
        let rest = text.replace(/<[^>]*>/g, " ");
        for (const word of words) rest = rest.replaceAll(word, " ");
        for (let before = ""; before !== rest;) {
            before = rest;
            rest = rest.replace(/\[[^[\]]*\]/g, " ");
        }
        // Numbers with units, names of formats, and qualities.
        const units = "kB|MB|GB|LUFS|LU|dBTP|bytes?|fps|kbit/s|Mbit/s|[a-z]|%";
        rest = rest.replace(new RegExp(`\\d[\\d.,:]*\\s?(${units})(?!\\p{L})`, "gu"), " ");
        rest = rest.replace(/\b(AAC|API|H\.264|HLS|JSON|MP4|HEVC|WebVTT|SubRip|VTT|\d+p)\b/g, " ");
        if (/\p{L}{2,}/u.test(rest)) found.add(`${place}: ${text.trim().replace(/\s+/g, " ")}`);
    };
    const visit = (root) => {
        for (const element of root.querySelectorAll("*")) {
            const other = element.closest(others);
            if (other && other !== document.documentElement) continue;
            if (element.shadowRoot) visit(element.shadowRoot);
            const isShadow = root instanceof ShadowRoot;
            if (isShadow && !element.checkVisibility({ visibilityProperty: true })) continue;
            for (const name of labels) {
                if (!element.hasAttribute(name)) continue;
                check(element.getAttribute(name), `${element.localName} ${name}`);
            }
            if (element.matches("meta[name=description], meta[property='og:description']")) {
                check(element.content, element.outerHTML);
            }
            const isText = (node) => node.nodeType === Node.TEXT_NODE && /\p{L}/u.test(node.data);
            if (![...element.childNodes].some(isText)) continue;
            // A text with links inside has its brackets in several elements.
            let whole = element;
            const isPart = (part) => !isWhole(textOf(part))
                || (!textOf(part).includes("[") && part.matches("a, b, em, kbd, span, strong"));
            while (isPart(whole) && whole.parentElement) whole = whole.parentElement;
            check(textOf(whole), whole.localName);
        }
    };
    visit(document);
    return [...found];
}"""


async def untranslated(page: Page, own_words: Sequence[str] = ()) -> list[str]:
    """Return the texts and labels of a page in `xx` that are not translated.

    `own_words` are texts that people wrote.
    """
    return list(await page.evaluate(UNTRANSLATED, list(own_words)))
