"""The states that rows go through. The values are stored: never rename one."""

from enum import StrEnum


class VideoStatus(StrEnum):
    """What became of a video's transcoding."""

    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


class Outcome(StrEnum):
    """How an attempt ended; one without is running or abandoned. HANDED_BACK ones don't count."""

    PUBLISHED = "published"
    FAILED = "failed"
    HANDED_BACK = "handed_back"


class RenditionState(StrEnum):
    """What became of a rendition. One that is being made is still planned."""

    PLANNED = "planned"
    COMPLETE = "complete"
    FAILED = "failed"


class PosterState(StrEnum):
    """How a poster that an editor asked for stands."""

    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
