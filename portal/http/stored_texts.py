"""Texts that the portal has stored in English, in the reader's language.

They are labels of tracks and files, and failures of films. Texts of people are unchanged.
"""

from collections.abc import Sequence
from functools import lru_cache

from langcodes import Language

from portal.films.attempts import EXHAUSTED_MESSAGE, FILM_DELETED_MESSAGE
from portal.films.sources import SourceChanged
from portal.http.languages import current_language, gettext
from portal.locale.messages import Message, recalled
from portal.transcoding.errors import LIMITS, REJECTIONS
from portal.transcoding.planning.tracks import language_name

# Labels that tracks without a name and a language get (`planning.tracks`), and the uploaded file.
MADE_LABELS = (
    # Translators: name of a sound track without a name.
    Message("Audio"),
    Message("Audio %(number)s"),
    Message("Subtitles"),
    Message("Subtitles %(number)s"),
    # Translators: the uploaded file, as a download.
    Message("Original"),
)
FAILURES = (*REJECTIONS.values(), EXHAUSTED_MESSAGE, FILM_DELETED_MESSAGE, SourceChanged.message)


def track_label(label: str, language: str | None = None) -> str:
    """Return the label of a track or file for the page, whose language may not be English.

    Labels that the portal made are translated: the English name of `language`, which is the code of
    the track's language, and words such as "Audio". People's own labels are returned as they are.
    """
    # More follows the name for one of several tracks in a language, and for files.
    name, bracket, more = label.partition(" (")
    if language and name == language_name(language):
        return _name_of(language, current_language()) + bracket + more
    return _shown(label, MADE_LABELS)


def failure_words(text: str) -> str:
    """Return the stored reason of a failure in the page's language."""
    return _shown(text, FAILURES)


def _shown(text: str, templates: Sequence[str]) -> str:
    """Return a text of one of the templates in the reader's language, and any other unchanged."""
    for template in templates:
        message = recalled(text, template)
        if isinstance(message, Message):
            values = {name: _shown(value, LIMITS) for name, value in message.values.items()}
            return gettext(template, **values)
    return text


@lru_cache(maxsize=1024)
def _name_of(language: str, reader: str) -> str:
    """Return the name of a language, with a capital letter as at the beginning of a line."""
    name = Language.get(language).display_name(reader)
    return name[:1].upper() + name[1:]
