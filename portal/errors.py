"""The portal's errors: exceptions with an HTTP status, a stable code and a message for people.

An exception's docstring is its default message. Raised anywhere, rendered once, in
`web.error_rendering`: RFC 9457 problem details under /api, an HTML page elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_LISTED_PARTS = 1000


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault in a request body: an RFC 6901 JSON pointer and what to do about it."""

    pointer: str
    message: str


class PortalError(Exception):
    """Something went wrong on our side. Please try again."""

    status: int = 500
    code: str = "internal_error"
    title: str = "Internal error"
    headers: Mapping[str, str] = {}
    # Of the problem document, besides those that all have (RFC 9457 section 3.2).
    extensions: Mapping[str, object] = {}

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


class Conflict(PortalError):
    """The request does not fit the present state."""

    status = 409


class UploadNotFound(Conflict):
    """No uploaded file was found for this key. Upload the file to its uploadUrl first."""

    code = "upload_not_found"
    title = "Upload not found"


class KeyAlreadyUsed(Conflict):
    """This key already belongs to a video with other metadata. Ask for a new upload address."""

    code = "key_already_used"
    title = "Key already used"


class UploadNotIssued(NotFound):
    """There is no upload with this id. Get a key from POST /api/videos/presign first."""

    code = "upload_not_issued"
    title = "Upload not issued"


class PartNotFound(NotFound):
    """The upload has no part with this number. Parts are numbered from 1 to partCount."""

    code = "part_not_found"
    title = "Part not found"


class UploadAlreadyStarted(Conflict):
    """This upload was started with another size. Discard it and ask for a new key."""

    code = "upload_already_started"
    title = "Upload already started"


class UploadNotStarted(Conflict):
    """No upload in parts is under way for this key. Start one with POST /api/uploads."""

    code = "upload_not_started"
    title = "Upload not started"


class UploadGone(Conflict):
    """Storage no longer knows this upload and its parts. Start it again with POST /api/uploads."""

    code = "upload_gone"
    title = "Upload gone"


class UploadSizeDiffers(Conflict):
    """The stored file has another size than announced. Ask for a new key and send it again."""

    code = "upload_size_differs"
    title = "Other size than announced"


class PartsMissing(Conflict):
    """Parts changed while the upload was being completed. Look which are there, then try again."""

    code = "parts_missing"
    title = "Parts missing"

    def __init__(self, missing: Sequence[int] = (), detail: str | None = None) -> None:
        super().__init__(detail)
        self.extensions = {"missingParts": list(missing[:MAX_LISTED_PARTS])}


class NothingToRetry(Conflict):
    """Nothing of this video has failed, so there is nothing to try again."""

    code = "nothing_to_retry"
    title = "Nothing to retry"


class NotPlayable(Conflict):
    """This video can't be played yet, so there is no frame to take from it."""

    code = "not_playable"
    title = "Not playable"


class MetadataChanged(PortalError):
    """Someone else has changed this video's metadata. Read it again, then decide what to send."""

    status = 412
    code = "metadata_changed"
    title = "Metadata changed"


class VersionRequired(PortalError):
    """Send the ETag of the metadata you have read in If-Match, so that no edit gets lost."""

    status = 428
    code = "precondition_required"
    title = "If-Match required"


class CrossSiteRequest(PortalError):
    """This was sent from another site. Open the video's own page and try from there."""

    status = 403
    code = "cross_site_request"
    title = "Sent from another site"


class TooManyRequests(PortalError):
    """Too many requests came from this address. Wait for the seconds in Retry-After."""

    status = 429
    code = "too_many_requests"
    title = "Too many requests"

    def __init__(self, wait_s: int) -> None:
        super().__init__(
            f"Too many requests came from your address. Try again in {wait_s} s; what is under "
            "way goes on."
        )
        self.headers = {"Retry-After": str(wait_s)}


class TooManyHeaders(PortalError):
    """The request has more than 100 headers. Send fewer."""

    status = 431
    code = "too_many_headers"
    title = "Too many headers"


class MalformedRequest(PortalError):
    """The request is not valid HTTP/1.1 (RFC 9112): end each line in CRLF, name one host."""

    status = 400
    code = "bad_request"
    title = "Bad request"


class BadTarget(MalformedRequest):
    """The request's target is not a path."""


class InvalidHost(MalformedRequest):
    """The Host header names no host. Send a name or an address, and a port if it is not 80."""


class AmbiguousLength(MalformedRequest):
    """Send Content-Length, or in HTTP/1.1 Transfer-Encoding, but not both."""

    # Where the next request would begin, nobody knows.
    headers = {"Connection": "close"}  # noqa: RUF012  # never changed


class UnknownCoding(MalformedRequest):
    """Send the body with a Content-Length, or with Transfer-Encoding: chunked."""

    status = 501
    code = "not_implemented"
    title = "Not implemented"


class OtherVersion(MalformedRequest):
    """Use HTTP/1.1."""

    status = 505
    code = "http_version_not_supported"
    title = "HTTP version not supported"
    headers = {"Connection": "close"}  # noqa: RUF012  # never changed


class UnknownHost(PortalError):
    """This portal has no such name. Its operator can add names to PUBLIC_URL or ALLOWED_HOSTS."""

    status = 421
    code = "unknown_host"
    title = "Unknown host"


class Unavailable(PortalError):
    """A part of the portal is not reachable at the moment. Try again in a few seconds."""

    status = 503
    code = "unavailable"
    title = "Temporarily unavailable"
    headers = {"Retry-After": "5"}  # noqa: RUF012  # never changed


class Overloaded(Unavailable):
    """The portal has more to do than it can at the moment. Nothing was changed; try again soon."""

    code = "overloaded"
    title = "Too much to do"
    headers = {"Retry-After": "2"}  # noqa: RUF012  # never changed


class DatabaseUnavailable(Unavailable):
    """The database is not reachable at the moment. Nothing was changed; try again shortly."""

    code = "database_unavailable"


class StorageUnavailable(Unavailable):
    """The file storage is not reachable at the moment. Nothing was changed; try again shortly."""

    code = "storage_unavailable"


class StorageDenied(StorageUnavailable):
    """The file storage refuses the portal. Nothing was changed; its operator has to mend this."""

    def __init__(self, s3_code: str) -> None:
        super().__init__()
        self.s3_code = s3_code
