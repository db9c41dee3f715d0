"""Catalogues of languages: extraction, compilation, and the pseudo-languages of tests.

    python static/catalogues.py

updates `portal/locale/portal.pot` and each language's `portal.po` from the sources, and compiles
them. The build of the package compiles them, too. Needs Babel.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from gettext import GNUTranslations
from importlib import import_module
from io import BytesIO
from pathlib import Path
from pkgutil import walk_packages

from babel import Locale
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "portal" / "locale"
TEMPLATE = LOCALE / "portal.pot"
PO = "LC_MESSAGES/portal.po"
METHODS = [
    ("portal/**.py", "python"),
    ("templates/**.html", "jinja2"),
    ("static/src/**.js", "javascript"),
]
OPTIONS = {"templates/**.html": {"trimmed": "true", "newstyle_gettext": "true", "silent": "false"}}
KEYWORDS = DEFAULT_KEYWORDS | {"Message": None, "PluralMessage": (1, 2)}
COMMENT_TAG = "Translators:"
COMMENT = "# Texts of the portal's pages."
HEADERS = ("Language", "Content-Type", "Plural-Forms")
# What a pseudo-language leaves as it is: placeholders, markup, and references of HTML.
KEPT = re.compile(r"(%\(\w+\)s|%%|<[^>]*>|&\w+;)")
ACCENTS = str.maketrans("AEIOUaeiouycn", "ÀÉÎÖÛåéîöûýçñ")
WORD = re.compile(r"\w+")
PSEUDO = ("xx", "xr")
# Numbers whose plural categories differ in some language (CLDR).
NUMBERS = (*range(200), 1_000_000)
SCRIPTS = "static/src/"


def compile_catalogues(locale: Path, *, with_pseudo: bool) -> dict[str, object]:
    """Compile each portal.po in the folder `locale` to a portal.mo, and the pseudo-languages.

    Return the texts and forms that scripts need, by the code of a language: see `_script_texts`.
    """
    catalogues = {path.parts[-3]: read(path) for path in sorted(locale.glob(f"*/{PO}"))}
    if with_pseudo:
        template = read(locale / TEMPLATE.name)
        catalogues |= {language: _pseudo(template, language) for language in PSEUDO}
    for language, catalogue in catalogues.items():
        target = (locale / language / PO).with_suffix(".mo")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            write_mo(file, catalogue)
    return {
        language: _script_texts(catalogue, language) for language, catalogue in catalogues.items()
    }


def extract() -> Catalog:
    """Return the texts of all sources, with the files that have them."""
    catalogue = Catalog(domain="portal", header_comment=COMMENT, fuzzy=False)
    places = extract_from_dir(
        ROOT,
        METHODS,
        OPTIONS,
        keywords=KEYWORDS,
        comment_tags=(COMMENT_TAG,),
        strip_comment_tags=True,
    )
    for file, _, text, comments, context in places:
        catalogue.add(text, locations=[(file, 0)], auto_comments=comments, context=context)
    for file, text in _error_texts():
        catalogue.add(text, locations=[(file, 0)])
    return catalogue


def update() -> None:
    """Write the texts of the sources to the template, and merge them into each language."""
    template = extract()
    _write(TEMPLATE, template)
    for path in sorted(LOCALE.glob(f"*/{PO}")):
        catalogue = read(path)
        catalogue.update(template, no_fuzzy_matching=True, update_header_comment=False)
        catalogue.obsolete.clear()
        _write(path, catalogue)


def _error_texts() -> Iterator[tuple[str, str]]:
    """Yield the file and the texts of each error: its title, and its docstring, the message."""
    for module in walk_packages(import_module("portal.features").__path__, "portal.features."):
        import_module(module.name)
    root = import_module("portal.errors").PortalError
    pending = [root]
    while pending:
        error = pending.pop()
        pending += error.__subclasses__()
        # Errors that the framework raises bring their own texts, and tests define errors, too.
        if error.__name__.startswith("_") or not error.__module__.startswith("portal."):
            continue
        file = f"{error.__module__.replace('.', '/')}.py"
        yield file, str(error.title)
        if error.__doc__:
            yield file, inspect.cleandoc(error.__doc__)


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        # A template has no language.
        locale = None if path.suffix == ".pot" else path.parts[-3]
        return read_po(file, locale=locale, domain="portal")


def _write(path: Path, catalogue: Catalog) -> None:
    """Write a catalogue, without what Babel adds: dates and names, which change at each update."""
    file = BytesIO()
    write_po(file, catalogue, width=100, include_lineno=False, sort_by_file=True, omit_header=True)
    headers = [(name, value) for name, value in catalogue.mime_headers if name in HEADERS]
    header = "".join(f'"{name}: {value}\\n"\n' for name, value in headers)
    text = f'{catalogue.header_comment}\nmsgid ""\nmsgstr ""\n{header}\n{file.getvalue().decode()}'
    path.write_text(text, encoding="utf-8")


def _pseudo(template: Catalog, language: str) -> Catalog:
    catalogue = Catalog(domain="portal", fuzzy=False)
    for message in messages_of(template):
        texts = message.id if isinstance(message.id, tuple) else (message.id,)
        strings = tuple(_pseudo_text(text, language) for text in texts)
        string = strings if message.pluralizable else strings[0]
        places = [(file, 0) for file, _ in message.locations]
        catalogue.add(message.id, string, locations=places, context=message.context)
    return catalogue


def _pseudo_text(text: str, language: str) -> str:
    """Return a text in brackets, with accents and 40 % longer, or from right to left."""
    if len(text) == 1:
        return text
    pieces = KEPT.split(text)
    if language == "xr":
        # Marks that turn a word around, as those of a right-to-left script would be.
        words = [
            piece if KEPT.fullmatch(piece) else WORD.sub("\u202e\\g<0>\u202c", piece)
            for piece in pieces
        ]
        return "".join(words)
    accented = [piece if KEPT.fullmatch(piece) else piece.translate(ACCENTS) for piece in pieces]
    letters = sum(len(piece) for piece in pieces if not KEPT.fullmatch(piece))
    return f"[{''.join(accented)}{' ·' * round(letters * 0.2)}]"


def _script_texts(catalogue: Catalog, language: str) -> dict[str, object]:
    """Return the texts of scripts by file, and the number of the form for each plural category."""
    files: dict[str, dict[str, object]] = {}
    for message in messages_of(catalogue):
        text = message.id[0] if isinstance(message.id, tuple) else message.id
        key = f"{message.context}\x04{text}" if message.context else text
        for file, _ in message.locations:
            if file.startswith(SCRIPTS):
                files.setdefault(file.removeprefix("static/"), {})[key] = message.string
    return {"plurals": _plural_forms(catalogue, language), "files": files}


def _plural_forms(catalogue: Catalog, language: str) -> dict[str, int]:
    """Return the number of the form for each plural category of `Intl.PluralRules`."""
    numbered = Catalog(locale=catalogue.locale)
    numbered.mime_headers = catalogue.mime_headers
    numbered.add(("form", "forms"), tuple(str(form) for form in range(catalogue.num_plurals)))
    file = BytesIO()
    write_mo(file, numbered)
    file.seek(0)
    compiled = GNUTranslations(file)
    category_of = Locale("en" if language in PSEUDO else language).plural_form
    return {category_of(n): int(compiled.ngettext("form", "forms", n)) for n in NUMBERS}


def messages_of(catalogue: Catalog) -> Iterator[Message]:
    """Yield the messages without the header, which has an empty id."""
    return (message for message in catalogue if message.id)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    update()
    compile_catalogues(LOCALE, with_pseudo=True)
