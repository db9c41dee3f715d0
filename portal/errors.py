"""The portal's errors: exceptions with an HTTP status, a stable code and a message for people.

An exception's docstring is its default message. Any package raises them; `http.errors` renders
them, as RFC 9457 problem details under /api and as HTML pages elsewhere. Messages and titles are in
English; pages translate them.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from portal.locale.messages import Message

MAX_LISTED_PARTS = 1000


@dataclass(frozen=True, slots=True)
class FieldError:
    """Fault in a request body: its RFC 6901 JSON pointer, and a message that says what to do."""

    pointer: str
    message: str


class PortalError(Exception):
    """Something went wrong on our side. Please try again."""

    status: int = 500
    code: str = "internal_error"
    title: str = Message("Internal error")
    headers: Mapping[str, str] = {}
    # Members that the problem document has in addition to those of RFC 9457 (section 3.2).
    extensions: Mapping[str, object] = {}
    # True if repeating the request is pointless: the fault is in its body or address.
    is_final: bool = False

    def __init_subclass__(cls, *, status: int = 0, code: str = "", title: str = "") -> None:
        """Set the subclass's attributes. The default title is the code in words."""
        cls.status = status or cls.status
        if code:
            cls.code = code
            cls.title = Message(title or code.replace("_", " ").capitalize())

    def __init__(self, detail: str | None = None, **extensions: object) -> None:
        self.detail = detail or Message(inspect.cleandoc(type(self).__doc__ or ""))
        self.extensions = extensions or self.extensions
        super().__init__(self.detail)


class NotFound(PortalError, status=404, code="not_found"):
    """There is nothing at this address."""


class VideoNotFound(NotFound, code="video_not_found"):
    """There is no video with this id. It may have been deleted, or the address is mistyped."""


class VideoLocked(
    PortalError, status=403, code="password_required", title=Message("Password needed")
):
    """This video needs a password. Open its page, and enter the one that you were given."""


class SeriesLocked(
    PortalError, status=403, code="series_password_required", title=Message("Password needed")
):
    """This series needs a password. Open its page, and enter the one that you were given."""


class ImportFailed(VideoNotFound, code="import_failed"):
    """This video's file was not imported. Fix the cause in `failure`, then import it again."""


class PlaybackTokenRefused(VideoNotFound):
    """This link has expired, was revoked or is mistyped. Ask its sender for a new one."""


class PlaybackLinkNotFound(NotFound, code="playback_link_not_found"):
    """This video has no playback link with this id. It may have expired or been revoked."""


class CaptionsNotFound(NotFound, code="captions_not_found"):
    """This video has no captions in this language. GET /api/videos/{id}/captions lists them all."""


class DownloadNotFound(NotFound, code="download_not_found"):
    """This video has no such file. GET /api/videos/{id}/downloads lists its files."""


class DownloadNotAllowed(PortalError, status=403, code="download_not_allowed"):
    """This file is not offered for download. Ask an editor of the video for it."""


class TranscriptionNotFound(NotFound, code="transcription_not_found"):
    """No transcription of this video is in progress. Its captions are at .../captions."""


class NoTranscription(NotFound, code="transcription_not_installed"):
    """This portal has no speech to text. Its operator can install portal[captions] and a model."""


class WebhookNotFound(NotFound, code="webhook_not_found"):
    """There is no webhook with this id, or the delivery has expired."""


class EventsExpired(PortalError, status=410, code="events_expired"):
    """Events after this one have expired. Request `after=latest`, then read all videos again."""


class NotAcceptable(PortalError, status=406, code="not_acceptable"):
    """This is a stream of events. Send the header Accept: text/event-stream."""


class MalformedBody(
    PortalError, status=400, code="malformed_json", title=Message("Malformed JSON")
):
    """The request body is not valid JSON. Send one object in UTF-8, without duplicate members."""

    is_final = True


class NotJson(PortalError, status=415, code="unsupported_media_type", title=Message("Not JSON")):
    """Send the request body as JSON, with the header Content-Type: application/json."""


class NotReports(PortalError, status=415, code="not_reports", title=Message("Not reports")):
    """Send lines of CMCD version 2, with the header Content-Type: application/cmcd."""


class UnreadableReports(PortalError, status=400, code="unreadable_reports"):
    """No line is a report of CMCD version 2 with `v`, `cid`, `sid` and `ts`."""


class StatisticsOff(
    PortalError, status=410, code="statistics_off", title=Message("Statistics are off")
):
    """This portal keeps no statistics. Stop sending reports."""


class NotCaptions(PortalError, status=415, code="not_captions", title=Message("Not captions")):
    """Send WebVTT as text/vtt, or SubRip as application/x-subrip, by the header Content-Type."""


class InvalidRequest(PortalError, status=422, code="validation_failed"):
    """The request is not valid. `errors` lists each fault with its remedy."""

    def __init__(self, errors: Sequence[FieldError], *, is_final: bool = False) -> None:
        super().__init__()
        self.errors = tuple(errors)
        self.is_final = is_final

    @property
    def by_field(self) -> dict[str, str]:
        """Return the first message for each field of a form."""
        first: dict[str, str] = {}
        for error in self.errors:
            first.setdefault(error.pointer.lstrip("/").partition("/")[0], error.message)
        return first


class IdempotencyKeyReused(InvalidRequest, code="idempotency_key_reused"):
    """This Idempotency-Key belongs to a different request. Send this request with a new key."""


class InvalidClip(PortalError, status=422, code="invalid_clip"):
    """`start` and `end` are not the times of a part of this video."""


class Conflict(PortalError, status=409):
    """The request conflicts with the current state."""


class RequestInProgress(Conflict, code="request_in_progress"):
    """The first request with this Idempotency-Key is still in progress. Send it again shortly."""

    headers = {"Retry-After": "1"}  # noqa: RUF012  # never changed


class UploadNotFound(Conflict, code="upload_not_found"):
    """No uploaded file was found for this key. Upload the file to its uploadUrl first."""


class KeyAlreadyUsed(Conflict, code="key_already_used"):
    """This key already belongs to a video with different metadata. Request a new upload address."""


class ReplacementInProgress(Conflict, code="replacement_in_progress"):
    """Another file is about to replace this one. Wait for it, or cancel it first."""


class ReplacementNotFound(NotFound, code="replacement_not_found"):
    """This video has no replacement in progress, and no former file that can be restored."""


class FilmIncomplete(Conflict, code="film_incomplete"):
    """Some qualities of this video, or its previews, are still being made. Copy it afterwards."""


class VisibilityDiffers(Conflict, code="visibility_differs"):
    """This key's video has a different visibility. PATCH the video in `present` to change it."""


class UploadNotIssued(NotFound, code="upload_not_issued"):
    """There is no upload with this id. Get a key from POST /api/videos/presign first."""


class PartNotFound(NotFound, code="part_not_found"):
    """The upload has no part with this number. Parts are numbered from 1 to partCount."""


class UploadAlreadyStarted(Conflict, code="upload_already_started"):
    """This upload was started with a different size. Discard it and request a new key."""


class UploadNotStarted(Conflict, code="upload_not_started"):
    """No upload in parts is under way for this key. Start one with POST /api/uploads."""


class UploadSizeNeeded(Conflict, code="upload_size_needed"):
    """The upload was started without a size. Give that of the part or file as `?sizeBytes=`."""


class UploadGone(Conflict, code="upload_gone"):
    """Storage no longer knows this upload and its parts. Start it again with POST /api/uploads."""


class UploadSizeDiffers(Conflict, code="upload_size_differs", title=Message("Unexpected size")):
    """The stored file differs in size from the announced one. Upload it again with a new key."""


class PartsMissing(Conflict, code="parts_missing"):
    """Parts changed while the upload was being completed. List the stored parts, then try again."""

    def __init__(self, missing: Sequence[int] = (), detail: str | None = None) -> None:
        super().__init__(detail)
        self.extensions = {"missingParts": list(missing[:MAX_LISTED_PARTS])}


class VideoQuotaExceeded(
    Conflict, code="video_quota_exceeded", title=Message("No more videos for now")
):
    """The account has reached its limit of videos published within 24 hours."""


class StorageQuotaExceeded(
    Conflict, code="storage_quota_exceeded", title=Message("No room for this file")
):
    """The file doesn't fit into the account's storage limit."""


class ApprovalChanged(Conflict, code="approval_changed"):
    """Someone else has decided about this video, or its file has changed. Open it again."""


class NothingToRetry(Conflict, code="nothing_to_retry"):
    """No part of this video has failed, so there is nothing to retry."""


class NotPlayable(Conflict, code="not_playable"):
    """This video can't be played yet. Wait until it is ready."""


class NoSound(Conflict, code="no_sound"):
    """This video has no sound, so there is nothing to transcribe."""


class TooManyPlaybackLinks(Conflict, code="too_many_playback_links"):
    """This video has 1,000 playback links. Revoke some, or wait until some have expired."""


class CaptionsExist(Conflict, code="captions_exist"):
    """This video has captions in this language. Replace them with PUT at their own address."""


class TooManyCaptions(Conflict, code="too_many_captions"):
    """This video has captions in 100 languages. Delete some first."""


class TooManyWebhooks(Conflict, code="too_many_webhooks"):
    """This portal has 50 webhooks. Remove some that are not used."""


class TooManySecrets(Conflict, code="too_many_secrets"):
    """This webhook has had four new secrets within 24 hours. Wait until the oldest has expired."""


class WebhookDisabled(Conflict, code="webhook_disabled"):
    """This webhook is disabled, so nothing is sent to it. Enable it first."""


class VersionConflict(PortalError, status=412):
    """Someone else has made a change. Read the current version, then decide what to send."""

    def with_present(self, present: Mapping[str, object], *, version: str) -> Self:
        """Return the same error with the recorded values and their version."""
        error = type(self)(present=present)
        error.headers = {"ETag": f'"{version}"'}
        return error


class MetadataChanged(VersionConflict, code="metadata_changed"):
    """Someone else has changed this video's metadata. Read it again, then decide what to send."""


class AccessChanged(VersionConflict, code="access_changed"):
    """Someone else has changed who may see this. Read it again, then decide what to send."""


class MembersChanged(VersionConflict, code="members_changed"):
    """Someone else has changed this group's members. Read them again, then decide what to send."""


class SeriesChanged(VersionConflict, code="series_changed"):
    """Someone else has changed this series. Read it again, then decide what to send."""


class CaptionsChanged(VersionConflict, code="captions_changed"):
    """Someone else has changed these captions. `present` has the current version."""


class ChaptersChanged(VersionConflict, code="chapters_changed"):
    """Someone else has changed these chapters. `present` has the current version."""


class CutsChanged(VersionConflict, code="cuts_changed"):
    """Someone else has cut this video, or replaced its file. `present` has the current cuts."""


class ReplacementChanged(VersionConflict, code="replacement_changed"):
    """The replacement has changed. Read it again, then decide what to send."""


class VersionRequired(
    PortalError, status=428, code="precondition_required", title=Message("If-Match required")
):
    """Send the ETag of the version that you read in If-Match, so that no change is lost."""


class NotSignedIn(PortalError, status=401, code="not_signed_in", title=Message("Sign in first")):
    """This needs an account. Sign in, or send an API token as Authorization: Bearer."""

    headers = {"WWW-Authenticate": 'Bearer realm="portal"'}  # noqa: RUF012  # never changed


class TokenRefused(NotSignedIn, code="invalid_token", title=Message("Invalid token")):
    """This API token is mistyped, revoked or expired. Create a new one on your account's page."""

    headers = {"WWW-Authenticate": 'Bearer realm="portal", error="invalid_token"'}  # noqa: RUF012


class NotAllowed(PortalError, status=403, code="not_allowed"):
    """Your role doesn't allow this. Ask an owner of this portal for another role."""


class MissingScope(NotAllowed, code="insufficient_scope"):
    """The API token lacks a scope."""

    def __init__(self, scope: str) -> None:
        super().__init__(
            Message(
                "This API token lacks the scope %(scope)s. Create one that has it.", scope=scope
            )
        )
        error = f'Bearer realm="portal", error="insufficient_scope", scope="{scope}"'
        self.headers = {"WWW-Authenticate": error}
        self.extensions = {"missingScope": scope}


class SignInRefused(
    PortalError, status=401, code="sign_in_refused", title=Message("Not signed in")
):
    """Wrong email address or password."""


class TooManyTries(PortalError, status=429, code="too_many_tries", title=Message("Too many tries")):
    """The password was wrong too often."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(
            Message(
                "The password was wrong several times. Try again in %(seconds)s s.", seconds=wait_s
            )
        )
        self.headers = {"Retry-After": str(wait_s)}


class AccountNotFound(NotFound, code="account_not_found"):
    """This account doesn't exist. It may have been removed."""


class AccountExists(Conflict, code="account_exists"):
    """An account with this email address already exists."""


class GroupNotFound(NotFound, code="group_not_found"):
    """This group doesn't exist. It may have been removed."""


class GroupExists(Conflict, code="group_exists"):
    """A group with this name already exists. Choose another name."""


class SeriesNotFound(NotFound, code="series_not_found"):
    """There is no series with this id. It may have been deleted, or the address is mistyped."""


class LastOwner(Conflict, code="last_owner"):
    """This is the last owner. Make someone else an owner first."""


class LinkNotValid(NotFound, code="link_not_valid", title=Message("This link is no longer valid")):
    """The link was used, was replaced or has expired. Ask its sender for a new one."""


class SingleSignOnRefused(
    PortalError, status=403, code="single_sign_on_refused", title=Message("Not signed in")
):
    """Single sign-on did not sign you in. Start again, or sign in with your password."""


class SignOnUnknown(PortalError, status=400, code="sign_on_unknown", title=Message("Start again")):
    """This sign-in was started in another browser, was used or has expired. Start again."""


class CrossSiteRequest(
    PortalError, status=403, code="cross_site_request", title=Message("Sent from another site")
):
    """This was sent from another site. Open the video's own page and try from there."""


class TooManyRequests(PortalError, status=429, code="too_many_requests"):
    """Too many requests came from this address or account. Wait for the seconds in Retry-After."""

    def __init__(self, wait_s: int, *, is_of_account: bool = False) -> None:
        if is_of_account:
            words = Message(
                "Too many requests came from your account. Try again in %(seconds)s s. Uploads "
                "in progress continue.",
                seconds=wait_s,
            )
        else:
            words = Message(
                "Too many requests came from your address. Try again in %(seconds)s s. Uploads "
                "in progress continue.",
                seconds=wait_s,
            )
        super().__init__(words)
        self.headers = {"Retry-After": str(wait_s)}


class UnknownHost(PortalError, status=421, code="unknown_host"):
    """This portal isn't set up for this host name. Its operator can add it to ALLOWED_HOSTS."""


class HttpVersionRefused(
    PortalError,
    status=505,
    code="http_version_not_supported",
    title=Message("HTTP version not supported"),
):
    """The portal serves HTTP/1.1 only. Repeat the request without HTTP/2 (h2c)."""


class Unavailable(
    PortalError, status=503, code="unavailable", title=Message("Temporarily unavailable")
):
    """A part of the portal is not reachable at the moment. Try again in a few seconds."""

    headers = {"Retry-After": "5"}  # noqa: RUF012  # never changed


class Overloaded(Unavailable, code="overloaded", title=Message("Too busy")):
    """The portal is too busy at the moment. No changes were made. Try again soon."""

    headers = {"Retry-After": "2"}  # noqa: RUF012  # never changed


class DownloadsBusy(Unavailable, code="downloads_busy", title=Message("Too busy")):
    """Many files are being prepared at the moment. Request this one again in a few minutes."""

    headers = {"Retry-After": "60"}  # noqa: RUF012  # never changed


class ProviderUnavailable(Unavailable, code="provider_unavailable", title=Unavailable.title):
    """Single sign-on is not reachable at the moment. Sign in with your password, or try again."""


class DatabaseUnavailable(Unavailable, code="database_unavailable", title=Unavailable.title):
    """The database is not reachable at the moment. No changes were made. Try again shortly."""


class StorageUnavailable(Unavailable, code="storage_unavailable", title=Unavailable.title):
    """The file storage is not reachable at the moment. No changes were made. Try again shortly."""


class StorageDenied(StorageUnavailable):
    """Storage denied access to the portal. No changes were made. Tell the portal's operator."""
