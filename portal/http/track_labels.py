"""Labels of sound tracks, captions and files in the reader's language, if the portal made them."""

from functools import lru_cache

from langcodes import Language

from portal.http.languages import current_language, translated
from portal.locale.messages import Message, recalled
from portal.transcoding.planning.tracks import language_name

# Labels that tracks without a name and a language get (`planning.tracks`), and the uploaded file.
MADE_LABELS = (
    # Translators: name of a sound track without a name.
    Message("Audio"),
    Message("Audio %(number)s", number="1"),
    Message("Subtitles"),
    Message("Subtitles %(number)s", number="1"),
    # Translators: the uploaded file, as a download.
    Message("Original"),
)


def track_label(label: str, language: str | None = None) -> str:
    """Return a label as readers of the page say it.

    The name of the track's language and the word for its kind are those of the page's language.
    People's own labels are unchanged.
    """
    if language and label == language_name(language):
        return _name_of(language, current_language())
    for made in MADE_LABELS:
        message = recalled(label, made.template)
        if isinstance(message, Message):
            return str(translated(message))
    return label


@lru_cache(maxsize=1024)
def _name_of(language: str, reader: str) -> str:
    return Language.get(language).display_name(reader)
