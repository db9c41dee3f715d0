"""Captions, chapters and transcription: texts in the times of the film that viewers get.

Begin with `service`. `versions` follows a change of the current version, `transcription` writes
captions from speech.
"""

from portal.features.captions import service, transcription, versions
from portal.films.captions import CAPTIONS, TRANSCRIPTION
from portal.videos.feature import Feature

FEATURE = Feature(
    name="captions",
    routes=("api", "chapters_api", "transcription_api", "pages"),
    panels=("pages",),
    jobs=((CAPTIONS, service.store), (TRANSCRIPTION, transcription.make_captions)),
    follow_version=versions.follow_version,
)
