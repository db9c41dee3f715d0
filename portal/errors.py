"""What can go wrong, as exceptions that carry an HTTP status, a stable code and plain words.

An exception's docstring is its default message. Raised anywhere, rendered once in `app.py`:
RFC 9457 problem details under /api, an HTML page elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault in a request body: an RFC 6901 JSON pointer and what to do about it."""

    pointer: str
    message: str


class PortalError(Exception):
    """Something went wrong on our side. Please try again."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    title: ClassVar[str] = "Internal error"
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, detail: str | None = None) -> None:
        self.detail = detail or inspect.cleandoc(type(self).__doc__ or "")
        super().__init__(self.detail)


class NotFound(PortalError):
    """There is nothing at this address."""

    status = 404
    code = "not_found"
    title = "Not found"


class VideoNotFound(NotFound):
    """There is no video with this id. It may have been deleted, or the address is mistyped."""

    code = "video_not_found"
    title = "Video not found"


class MalformedBody(PortalError):
    """The request body is not valid JSON. Send one JSON object, encoded as UTF-8."""

    status = 400
    code = "malformed_json"
    title = "Malformed JSON"


class NotJson(PortalError):
    """Send the request body as JSON, with the header Content-Type: application/json."""

    status = 415
    code = "unsupported_media_type"
    title = "Not JSON"


class InvalidRequest(PortalError):
    """The request has faults; each is listed in `errors`."""

    status = 422
    code = "validation_failed"
    title = "Validation failed"

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__()
        self.errors = tuple(errors)


class UploadNotFound(PortalError):
    """No uploaded file was found for this key. Upload the file to its uploadUrl first."""

    status = 409
    code = "upload_not_found"
    title = "Upload not found"


class KeyAlreadyUsed(PortalError):
    """This key already belongs to a video with other metadata. Ask for a new upload address."""

    status = 409
    code = "key_already_used"
    title = "Key already used"


class NothingToRetry(PortalError):
    """Nothing of this video has failed, so there is nothing to try again."""

    status = 409
    code = "nothing_to_retry"
    title = "Nothing to retry"


class CrossSiteRequest(PortalError):
    """This was sent from another site. Open the video's own page and try from there."""

    status = 403
    code = "cross_site_request"
    title = "Sent from another site"


class Unavailable(PortalError):
    """A part of the portal is not reachable at the moment. Try again in a few seconds."""

    status = 503
    code = "unavailable"
    title = "Temporarily unavailable"
    headers: ClassVar[Mapping[str, str]] = {"Retry-After": "5"}


class DatabaseUnavailable(Unavailable):
    """The database is not reachable at the moment. Nothing was changed; try again shortly."""

    code = "database_unavailable"


class StorageUnavailable(Unavailable):
    """The file storage is not reachable at the moment. Nothing was changed; try again shortly."""

    code = "storage_unavailable"


class ObjectMissing(Exception):
    """Storage has no object under this key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key
