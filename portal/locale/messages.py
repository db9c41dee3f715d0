"""Texts for people: English for programs and logs, and the templates that pages translate. Pure.

The texts are the keys of the gettext catalogues beside this module.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol, Self


class Catalogue(Protocol):
    """Translations into one language, as those of the standard library's gettext."""

    def gettext(self, message: str) -> str:
        """Return the translation of a text, or the text."""

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """Return the translation of the form for a number, or the English form."""

    def pgettext(self, context: str, message: str) -> str:
        """Return the translation of a text that has several meanings, or the text."""


class Message(str):
    """English text that can be translated, because its template and values are known.

    `Message("Longer than %(limit)s.", limit=60)` is the text "Longer than 60.". The template is a
    literal, since translators get the literals. A value may be a message, too. Any operation on the
    text, such as joining it, returns a plain string, which stays English.
    """

    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> Self:
        """Return the message; without values, the template may contain any percent sign."""
        message = super().__new__(cls, template % values if values else template)
        message.template = template
        message.values = values
        return message

    def __getnewargs_ex__(self) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Return the arguments of a copy."""
        return (self.template,), dict(self.values)

    def in_language(self, catalogue: Catalogue) -> str:
        """Return the text in the catalogue's language, or in English if it is not there."""
        return self._filled(catalogue.gettext(self.template), catalogue)

    def _filled(self, template: str, catalogue: Catalogue) -> str:
        if not self.values:
            return template
        return template % {
            name: translated(value, catalogue) for name, value in self.values.items()
        }


class PluralMessage(Message):
    """Message with a form for one and a form for any other `count`, which is one of its values."""

    plural: str

    def __new__(cls, template: str, plural: str, /, *, count: int, **values: Any) -> Self:
        """Return the message in the form for `count`."""
        form = template if count == 1 else plural
        message = super().__new__(cls, form, count=count, **values)
        message.template = template
        message.plural = plural
        return message

    def __getnewargs_ex__(self) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Return the arguments of a copy."""
        return (self.template, self.plural), dict(self.values)

    def in_language(self, catalogue: Catalogue) -> str:
        """Return the text in the catalogue's language, in the form that the language needs."""
        form = catalogue.ngettext(self.template, self.plural, self.values["count"])
        return self._filled(form, catalogue)


def translated(value: Any, catalogue: Catalogue) -> Any:
    """Return a message in the catalogue's language, and any other value unchanged."""
    return value.in_language(catalogue) if isinstance(value, Message) else value


def recalled(text: str, template: str) -> str:
    """Return a stored English text as a `Message` again, if the whole text was made of a template.

    The values are strings. A text that was not made of the template is returned as it is.
    """
    match = _pattern_of(template).fullmatch(text)
    return Message(template, **match.groupdict()) if match else text


@cache
def _pattern_of(template: str) -> re.Pattern[str]:
    """Return a pattern of all texts of a template, with a group for each value."""
    pattern = re.escape(template)
    for name in set(re.findall(r"%\((\w+)\)s", template)):
        pattern = pattern.replace(re.escape(f"%({name})s"), f"(?P<{name}>.+)")
    return re.compile(pattern, re.DOTALL)


class Number(Message):
    """Number with the decimal sign and the groups of thousands of a language."""

    def in_language(self, catalogue: Catalogue) -> str:
        """Return the number as the catalogue's language writes it."""
        # Translators: the sign between a number and its fraction, as in 12.4.
        point = catalogue.pgettext("decimal sign", ".")
        # Translators: the sign between groups of three digits, as in 1,234,567.
        comma = catalogue.pgettext("sign between thousands", ",")
        return self.template.translate({ord("."): point, ord(","): comma})


def numeral(value: float, digits: int | None = None) -> Number:
    """Return a number with its thousands in groups, and with this many digits of its fraction."""
    return Number(f"{value:,}" if digits is None else f"{value:,.{digits}f}")
