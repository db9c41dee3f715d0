"""The states that rows go through. The values are stored: never rename one."""

from enum import StrEnum


class VideoStatus(StrEnum):
    """What became of a video's transcoding."""

    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


class Outcome(StrEnum):
    """How an attempt ended; one without is running or abandoned.

    HANDED_BACK ones don't count.
    """

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


class Visibility(StrEnum):
    """Who may see a video, the most first; `accounts.permissions` has the rules."""

    PUBLIC = "public"
    UNLISTED = "unlisted"
    PRIVATE = "private"


class Role(StrEnum):
    """What an account may do, the most first; `accounts.permissions` has the rules."""

    OWNER = "owner"
    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"


class Scope(StrEnum):
    """What an API token may be used for, as far as its account may."""

    READ = "videos:read"
    WRITE = "videos:write"
    DELETE = "videos:delete"
    ADMIN = "admin"
