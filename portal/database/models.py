"""Tables of uploads and videos, and of everything that belongs to one video.

A video has versions, which are files with their transcoding. People get the current one.

Models hold data only; use cases and their transactions are in `videos`, `uploads` and `films`.
`migrations` creates the tables with their indexes and constraints. `owner_id` is the account that
began an upload or published a video; None on a portal without accounts.
"""

from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from tortoise import fields
from tortoise.contrib.postgres.fields import ArrayField, TSVectorField
from tortoise.models import Model
from tortoise.queryset import QuerySet

from portal.transcoding.packaging.master import Kind


class VideoStatus(StrEnum):
    """State of a version's transcoding, and so of the video of which it is the current version."""

    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


class Outcome(StrEnum):
    """Outcome of an attempt. An attempt without one is running or abandoned.

    Attempts that were handed back don't count.
    """

    PUBLISHED = "published"
    FAILED = "failed"
    HANDED_BACK = "handed_back"


class RenditionState(StrEnum):
    """State of a rendition. A rendition in progress is still planned."""

    PLANNED = "planned"
    COMPLETE = "complete"
    FAILED = "failed"


class PosterState(StrEnum):
    """State of a requested poster."""

    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"


# `accounts.permissions` has the rules.
class Visibility(StrEnum):
    """Visibility of a video, from the largest audience to the smallest."""

    PUBLIC = "public"
    UNLISTED = "unlisted"
    PRIVATE = "private"


# `features.approval` has the rules.
class Approval(StrEnum):
    """State of the approval of a video. A video that needs no approval is approved."""

    APPROVED = "approved"
    WAITING = "waiting"
    REFUSED = "refused"


class Category(Model):
    """Category of videos. A migration creates all rows; the portal never changes them."""

    id = fields.SmallIntField(primary_key=True, generated=False)
    name = fields.CharField(max_length=100, unique=True)

    class Meta:
        table = "categories"
        ordering = ("id",)


class Upload(Model):
    """Storage key that the portal issued for one file, whether or not the file has arrived.

    `multipart_id` is storage's id of an unfinished upload in parts, and `size_bytes` the size
    announced at its start, or that of the parts so far of an upload that `is_growing`. `active_at`
    is the last activity of an upload in parts: its start, its completion, or a signed part. The key
    of a discarded upload can no longer be used.
    `is_compared` says that the file was still its video's source after its upload URL had expired,
    and so after the last moment at which someone could have replaced the file. The browser whose
    secret has the `sender_digest` began it by a hand-in link, and continues it until
    `sender_until`. Its file may have `sender_max_bytes`; None is the portal's limit.
    """

    id = fields.UUIDField(primary_key=True)
    key = fields.CharField(max_length=400, unique=True)
    file_name = fields.CharField(max_length=255)
    content_type = fields.CharField(max_length=40)
    multipart_id: str | None = fields.TextField(null=True)
    size_bytes: int | None = fields.BigIntField(null=True)
    is_growing = fields.BooleanField(default=False, db_default=False)
    is_discarded = fields.BooleanField(default=False, db_default=False)
    is_compared = fields.BooleanField(default=False, db_default=False)
    active_at: datetime | None = fields.DatetimeField(null=True)
    owner_id: UUID | None = fields.UUIDField(null=True)
    sender_digest: str | None = fields.CharField(max_length=64, null=True)  # type: ignore[assignment]  # null is untyped
    sender_max_bytes: int | None = fields.BigIntField(null=True)
    sender_until: datetime | None = fields.DatetimeField(null=True)
    created_at = fields.DatetimeField(auto_now_add=True)

    class Meta:
        table = "uploads"


class Details(Model):
    """Columns of a publication: the details of a video, and its audience.

    Edits: `metadata_version` counts those of title, description, categories, tags, passthrough and
    visibility, from 1. `submitted_digest` is the digest of the metadata at creation, once they were
    edited. `poster_version` is the number of the poster request that the poster comes from, or 0
    if transcoding chose it; `poster_path` is the path of a requested poster below `hls/<id>/`, and
    `poster_time_s` the time in the whole film of the frame that it shows, None for a picture. A cut
    that removes the frame empties `poster_path` alone.
    `changed_at` is when a person last changed the metadata, the poster or the audience, if ever.
    `updated_at` moves with every event of the video (`events.log`), and with its processing.

    Audience: `visibility` and `signed_in_only` decide the video's audience
    (`accounts.permissions`), together with `admitted_ids`, the accounts and groups that it is
    shared with, of whom those in `editor_ids` may edit it, and with the password, if there is one:
    browsers in which it was entered keep `unlock_id`. A private video may have a public page.
    `embed_origins` are the sites that may frame its player; an empty list leaves that to the
    portal's setting. `approval` is null in place of `APPROVED`; until then only the owner and the
    people who may approve see the video. A refused video has an `approval_reason`.

    `passthrough` is an integrator's text, which the portal ignores. `views` counts all views
    (`statistics`). `has_even_loudness` lets the player apply a gain (`loudness`).

    `described_times` has times in the description whose moment in the whole film is another one
    (`transcoding.planning.described_times`).
    `search` and `sort_title` are derived from title, description and tags
    (`search.search_columns`).
    `captions_job_id` is set while storage lacks captions of a ready video.

    A video with `deleted_at` is hidden, and its deletion can be undone for a short time
    (`features.deletion.service`). Its processing continues meanwhile.
    """

    id = fields.UUIDField(primary_key=True)
    version_id = fields.UUIDField()
    title = fields.TextField()
    description = fields.TextField()
    described_times: dict[str, float | None] = fields.JSONField(default=dict)
    category_ids: list[int] = ArrayField("smallint")
    tags = fields.TextField()
    captions_job_id: int | None = fields.BigIntField(null=True)
    metadata_version = fields.IntField(default=1)
    submitted_digest: str | None = fields.CharField(max_length=64, null=True)  # type: ignore[assignment]
    poster_version = fields.IntField(default=0)
    poster_path: str | None = fields.CharField(max_length=60, null=True)  # type: ignore[assignment]
    poster_time_s: float | None = fields.FloatField(null=True)
    owner_id: UUID | None = fields.UUIDField(null=True)
    visibility = fields.CharEnumField(Visibility, max_length=10, default=Visibility.PUBLIC)
    signed_in_only = fields.BooleanField(default=False)
    has_public_page = fields.BooleanField(default=False)
    admitted_ids: list[UUID] = ArrayField("uuid", default=list)
    editor_ids: list[UUID] = ArrayField("uuid", default=list)
    password_hash: str | None = fields.TextField(null=True)
    unlock_id: UUID | None = fields.UUIDField(null=True)
    embed_origins: list[str] = ArrayField("text", default=list)
    approval: Approval | None = fields.CharEnumField(  # type: ignore[assignment]  # null is untyped
        Approval, max_length=10, null=True
    )
    approval_reason = fields.TextField(default="")
    passthrough = fields.TextField(default="")
    has_even_loudness = fields.BooleanField(default=True)
    views = fields.BigIntField(default=0)
    search = TSVectorField(default="")
    sort_title = fields.TextField(default="")
    created_at: datetime = fields.DatetimeField()
    updated_at: datetime = fields.DatetimeField()
    changed_at: datetime | None = fields.DatetimeField(null=True)
    deleted_at: datetime | None = fields.DatetimeField(null=True)

    class Meta:
        abstract = True


class Source(Model):
    """Columns of a version: a file that was uploaded, and the state of its transcoding.

    `storage_key` is the key of the upload that holds the file. `published_attempt` is the number of
    the attempt whose master playlist is played; it is set exactly while the status is ready.
    Attempts up to `forgiven_attempts` don't count: an editor asked for new ones after them.
    `probe_answer` is the result of the first probe (`transcoding.probing.probe`), which later
    passes use. A release that changes its shape empties it by a migration.

    A cut has kept intervals in `keep`, as pairs of seconds of the whole film, and as `base_id` the
    version of the whole film, whose segments it plays. It has the same file. Both are None for
    whole versions. Several videos and versions may share a file.

    Jobs: `transcode_job_id` probes the source, and copies what can be copied; `encode_job_id` is
    the job that then encodes, if an encoder is needed. `complete_job_id` is set while the ladder of
    a ready version is being completed, and `storyboard_job_id` until its storyboard is made, or
    given up after some `storyboard_tries`.

    The loudness of the default sound is measured with the storyboard
    (`transcoding.encoding.loudness`). Its three columns are None until then, and for silence. A cut
    has those of the whole film.
    """

    file_name = fields.CharField(max_length=255)
    storage_key = fields.CharField(max_length=400)
    size_bytes = fields.BigIntField()
    source_etag = fields.CharField(max_length=200)
    probe_answer: str | None = fields.TextField(null=True)
    keep: list[list[float]] | None = fields.JSONField(null=True)
    base_id: UUID | None = fields.UUIDField(null=True)
    status = fields.CharEnumField(VideoStatus, max_length=10, default=VideoStatus.PROCESSING)
    failure_code = fields.CharField(max_length=60, null=True)
    failure_message: str | None = fields.TextField(null=True)
    notes: list[str] = ArrayField("text", default=list)
    transcode_job_id = fields.BigIntField(unique=True)
    encode_job_id: int | None = fields.BigIntField(null=True)
    complete_job_id: int | None = fields.BigIntField(null=True)
    storyboard_job_id: int | None = fields.BigIntField(null=True)
    storyboard_tries = fields.SmallIntField(default=0)
    forgiven_attempts = fields.BigIntField(default=0)
    published_attempt: int | None = fields.BigIntField(null=True)
    duration_s: float | None = fields.FloatField(null=True)
    width: int | None = fields.IntField(null=True)
    height: int | None = fields.IntField(null=True)
    has_poster = fields.BooleanField(default=False)
    has_storyboard = fields.BooleanField(default=False)
    integrated_lufs: float | None = fields.FloatField(null=True)
    loudness_range_lu: float | None = fields.FloatField(null=True)
    true_peak_dbtp: float | None = fields.FloatField(null=True)

    class Meta:
        abstract = True

    @property
    def first_job_id(self) -> int:
        """Return the job that makes the version playable: the one that encodes, if there is any."""
        return self.encode_job_id or self.transcode_job_id


class Publication(Details):
    """Published video: its details, its audience, and the id of its current version.

    Viewers watch the current version, which `version_id` names. `last_removed_attempt` is the
    highest number of an attempt whose version was removed, or 0. Later attempts have higher
    numbers, because caches may keep files of removed ones for a year.
    """

    last_removed_attempt = fields.BigIntField(default=0)

    class Meta:
        table = "publications"


class Version(Source):
    """File of a video, and its transcoding. The first version has the id of the video.

    `Publication.version_id` names the current version. `retired_at` is when another version took
    its place. A version that is neither current nor retired is a replacement or a cut, which
    becomes current when it is ready.
    """

    id = fields.UUIDField(primary_key=True)
    video_id = fields.UUIDField()
    created_at: datetime = fields.DatetimeField()
    retired_at: datetime | None = fields.DatetimeField(null=True)

    class Meta:
        table = "versions"


class Video(Details, Source):
    """Video as it is read everywhere: a publication with the columns of its current version.

    The table is a view (`functions/videos.sql`), so it is only read; writes go to `Publication` and
    `Version`.
    """

    class Meta:
        table = "videos"

    @classmethod
    def present(cls) -> QuerySet[Self]:
        """Return a query of the videos that are not deleted, for everything that clients see."""
        return cls.filter(deleted_at=None)

    async def current_version(self) -> Version:
        """Return the version whose columns the video has."""
        return await Version.get(id=self.version_id)


class Attempt(Model):
    """Pass of one worker over a version's source, under a lease.

    Its output is stored below `hls/<video id>/<number>/`; the numbers of a video ascend. The worker
    renews the lease while it works; another worker may supersede an attempt whose lease has expired
    (`maintenance.recovery`). The error is for the operator; editors see the video's failure. Once
    an attempt is swept, storage has none of its output that is not in use.
    """

    id = fields.BigIntField(primary_key=True)
    version: fields.ForeignKeyRelation[Version] = fields.ForeignKeyField(
        "portal.Version", related_name="attempts", on_delete=fields.CASCADE
    )
    video_id = fields.UUIDField()
    number = fields.BigIntField()
    worker = fields.CharField(max_length=200)
    lease_expires_at: datetime = fields.DatetimeField()
    stage = fields.CharField(max_length=20)
    percent = fields.FloatField(default=0.0)
    eta_s: float | None = fields.FloatField(null=True)
    started_at: datetime = fields.DatetimeField()
    finished_at: datetime | None = fields.DatetimeField(null=True)
    outcome: Outcome | None = fields.CharEnumField(  # type: ignore[assignment]  # null is untyped
        Outcome, max_length=12, null=True
    )
    error_code = fields.CharField(max_length=60, null=True)
    error_detail: str | None = fields.TextField(null=True)
    is_swept = fields.BooleanField(default=False, db_default=False)

    version_id: UUID

    class Meta:
        table = "attempts"


class Rendition(Model):
    """Rendition of a version, planned after the probe and measured when it is complete.

    `attempt_number` is the number of the last attempt that began the rendition; if that attempt is
    open, the rendition is in progress. A complete rendition is stored in the folder of that
    attempt: attempts that resume after its segments add theirs there. `tries` counts attempts,
    except those that were handed back. `error_detail` is for the operator.
    """

    id = fields.BigIntField(primary_key=True)
    version: fields.ForeignKeyRelation[Version] = fields.ForeignKeyField(
        "portal.Version", related_name="renditions", on_delete=fields.CASCADE
    )
    kind = fields.CharEnumField(Kind, max_length=10)
    name = fields.CharField(max_length=40)
    position = fields.IntField()
    state = fields.CharEnumField(RenditionState, max_length=10, default=RenditionState.PLANNED)
    attempt_number: int | None = fields.BigIntField(null=True)
    tries = fields.IntField(default=0)
    error_code = fields.CharField(max_length=60, null=True)
    error_detail: str | None = fields.TextField(null=True)
    copied = fields.BooleanField(default=False)
    width: int | None = fields.IntField(null=True)
    height: int | None = fields.IntField(null=True)
    frame_rate = fields.CharField(max_length=30, null=True)
    codecs = fields.CharField(max_length=100, null=True)
    bandwidth_bps: int | None = fields.BigIntField(null=True)
    average_bandwidth_bps: int | None = fields.BigIntField(null=True)
    iframe_bandwidth_bps: int | None = fields.BigIntField(null=True)
    size_bytes: int | None = fields.BigIntField(null=True)
    segment_count: int | None = fields.IntField(null=True)
    channels: int | None = fields.IntField(null=True)
    language = fields.CharField(max_length=60, null=True)
    label: str | None = fields.TextField(null=True)
    is_default = fields.BooleanField(default=False)

    version_id: UUID

    class Meta:
        table = "renditions"
        ordering = ("position",)


class CaptionSource(StrEnum):
    """Origin of captions. Captions that a person has saved are uploads."""

    FILE = "file"
    UPLOAD = "upload"
    MACHINE = "machine"


class Caption(Model):
    """Captions of a video in one language, as WebVTT.

    `text` is what viewers get, with the times of the current version. `whole_text` has the captions
    of the whole film, from which `text` is derived, if that is cut, or if some begin after the end;
    otherwise it is None.
    `version` counts saves. Storage has the segments of `written_version`, which have `size_bytes`.
    A track of the source is copied from its `rendition`, and has no text until then. `tries` counts
    consecutive jobs that stored no segment of `version`; the last one sets `error_code`.
    """

    id = fields.BigIntField(primary_key=True)
    video: fields.ForeignKeyRelation[Video] = fields.ForeignKeyField(
        "portal.Video", related_name="captions", on_delete=fields.CASCADE
    )
    language = fields.CharField(max_length=60)
    label = fields.TextField()
    is_default = fields.BooleanField(default=False)
    source = fields.CharEnumField(CaptionSource, max_length=10)
    rendition = fields.CharField(max_length=40, null=True)
    text: str | None = fields.TextField(null=True)
    whole_text: str | None = fields.TextField(null=True)
    search = TSVectorField(default="")
    cue_count = fields.IntField(default=0)
    version = fields.IntField(default=1)
    written_version: int | None = fields.IntField(null=True)
    size_bytes = fields.BigIntField(default=0)
    tries = fields.IntField(default=0)
    error_code: str | None = fields.CharField(max_length=60, null=True)  # type: ignore[assignment]
    changed_at: datetime = fields.DatetimeField(auto_now=True)

    video_id: UUID

    class Meta:
        table = "captions"
        ordering = ("-is_default", "label")


class PosterRequest(Model):
    """Last poster that an editor requested: the frame at a time, or an uploaded picture.

    `number` counts the requests of a video and names the poster, so that no name is used twice.
    """

    id = fields.BigIntField(primary_key=True)
    video_id = fields.UUIDField(unique=True)
    number = fields.IntField()
    # The time is None for an uploaded picture.
    time_s: float | None = fields.FloatField(null=True)
    state = fields.CharEnumField(PosterState, max_length=10, default=PosterState.WAITING)
    tries = fields.IntField(default=0)
    job_id = fields.BigIntField()
    error_code = fields.CharField(max_length=60, null=True)

    class Meta:
        table = "poster_requests"


class Deletion(Model):
    """Pending removal of a deleted video's files from storage, with the keys of its sources.

    Until `settles_at` a worker may still write files of the video, so the removal ends after that.
    """

    video_id = fields.UUIDField(primary_key=True)
    storage_keys: list[str] = ArrayField("text")
    job_id = fields.BigIntField()
    settles_at: datetime = fields.DatetimeField()

    class Meta:
        table = "deletions"


class Tombstone(Model):
    """Video that was deleted some time ago.

    Its upload URL may still be valid, and a worker that was suspended may still write files. After
    that the janitor looks for files of the video once more. The video counts against its account's
    quota until 24 hours after its publication.
    """

    video_id = fields.UUIDField(primary_key=True)
    storage_key = fields.CharField(max_length=400)
    owner_id: UUID | None = fields.UUIDField(null=True)
    published_at: datetime | None = fields.DatetimeField(null=True)
    deleted_at: datetime = fields.DatetimeField()

    class Meta:
        table = "tombstones"
