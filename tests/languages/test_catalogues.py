"""Catalogues are complete: each text of the sources has a translation with the same values."""

import re
from collections import Counter
from pathlib import Path

import catalogues
import pytest
from babel.messages.catalog import Catalog, Message

LANGUAGES = sorted(path.parts[-3] for path in catalogues.LOCALE.glob(f"*/{catalogues.PO}"))
# Placeholders, tags and references, which a translation must have, too.
VALUES = re.compile(r"%\(\w+\)s|%%|</?\w+[^>]*>|&\w+;")
SAME_AS_ENGLISH = Path(__file__).parent / "same_as_english.txt"


def catalogue_of(language: str) -> Catalog:
    return catalogues.read(catalogues.LOCALE / language / catalogues.PO)


def ids_of(catalogue: Catalog) -> set[tuple[str | None, object]]:
    """Return the texts of a catalogue, with their contexts."""
    return {(message.context, message.id) for message in catalogues.messages_of(catalogue)}


def forms_of(message: Message) -> list[str]:
    """Return the translation of a message, in all its forms."""
    strings = message.string
    return list(strings) if isinstance(strings, tuple) else [strings]


def name_of(message: Message) -> str:
    return str(message.id[0] if isinstance(message.id, tuple) else message.id)


def test_template_has_the_texts_of_the_sources() -> None:
    template = catalogues.read(catalogues.TEMPLATE)
    remedy = "Run `python static/catalogues.py`, and translate what is new."
    assert ids_of(template) == ids_of(catalogues.extract()), remedy


@pytest.mark.parametrize("language", LANGUAGES)
def test_catalogue_has_the_texts_of_the_template_and_no_others(language: str) -> None:
    template = catalogues.read(catalogues.TEMPLATE)
    catalogue = catalogue_of(language)
    assert ids_of(catalogue) == ids_of(template)
    unfinished = [
        name_of(message)
        for message in catalogues.messages_of(catalogue)
        if message.fuzzy or not all(forms_of(message))
    ]
    assert unfinished == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_have_the_values_and_the_markup_of_the_texts(language: str) -> None:
    wrong = []
    for message in catalogues.messages_of(catalogue_of(language)):
        ids = message.id if isinstance(message.id, tuple) else (message.id,)
        expected = [Counter(VALUES.findall(text)) for text in ids]
        for form in forms_of(message):
            # A form for one may leave the number out.
            if Counter(VALUES.findall(form)) not in expected:
                wrong.append((name_of(message), form))
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_left_in_english(language: str) -> None:
    """A translation equals the English text only if the file of such texts says so."""
    listed = SAME_AS_ENGLISH.read_text(encoding="utf-8").splitlines()
    same = {
        name_of(message)
        for message in catalogues.messages_of(catalogue_of(language))
        if message.string in (message.id, name_of(message))
    }
    # A line names the languages that it is for: `de fr: Codec`; without them it is for all.
    allowed = {
        text
        for codes, _, text in (line.partition(": ") for line in listed if line)
        if language in codes.split() or codes == "all"
    }
    assert same == allowed
