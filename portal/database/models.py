"""The database tables.

Models hold data only; use cases and their transactions are in `videos`, `uploads` and `processing`.
`migrations` creates the tables; they are never generated from here. `owner_id` is the account that
began an upload or published a video; None on a portal without accounts.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from tortoise import fields
from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.contrib.postgres.fields import ArrayField, TSVectorField
from tortoise.contrib.postgres.indexes import GinIndex
from tortoise.models import Model
from tortoise.queryset import QuerySet

from portal.database.search import search_columns
from portal.transcoding.packaging.master import Kind

SEARCHED_FIELDS = frozenset({"title", "description", "tags"})


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


class Category(Model):
    """A row of the fixed category table; laid by a migration, never edited by the portal."""

    id = fields.SmallIntField(primary_key=True, generated=False)
    name = fields.CharField(max_length=100, unique=True)

    class Meta:
        table = "categories"
        ordering = ("id",)


class Upload(Model):
    """A storage key issued by the portal, whether or not a file has arrived under it.

    `multipart_id` is storage's name of the unfinished upload in parts, if there is one, and
    `size_bytes` the size announced when it was started. A discarded upload was given up by its
    owner: its key can no longer be used. `active_at` is when one in parts was last heard of: it was
    started, completed, or a part's address was signed. `is_compared` tells that the file was found
    as its video has it after the last moment at which it could be replaced.
    """

    id = fields.UUIDField(primary_key=True)
    key = fields.CharField(max_length=400, unique=True)
    file_name = fields.CharField(max_length=255)
    content_type = fields.CharField(max_length=40)
    multipart_id: str | None = fields.TextField(null=True)
    size_bytes: int | None = fields.BigIntField(null=True)
    is_discarded = fields.BooleanField(default=False, db_default=False)
    is_compared = fields.BooleanField(default=False, db_default=False)
    active_at: datetime | None = fields.DatetimeField(null=True)
    owner_id: UUID | None = fields.UUIDField(null=True)
    created_at = fields.DatetimeField(auto_now_add=True)

    class Meta:
        table = "uploads"


class Video(Model):
    """A published video: what was submitted, and what became of its transcoding.

    `storage_key` is the key of the upload that holds the raw file. `published_attempt` is the
    number of the attempt that made the video ready and whose master playlist is played; it is set
    exactly when the status is ready. `transcode_job_id` is the job that looks into the file,
    `encode_job_id` the one that the work was left to, if it takes an encoder. `complete_job_id` is
    set while a ready video is being completed: its storyboard first, whose tries so far are
    `storyboard_tries` until it is made or skipped, and then its ladder. `captions_job_id` is set
    while storage lacks captions of a ready video. `probe_answer` is what the first look at the file
    found (`transcoding.probing.probe`), for all later ones; a release that changes what it holds
    empties it by a migration.
    Attempts up to `forgiven_attempts` do not count: the editor asked for new ones after them.

    `metadata_version` counts the edits of title, description, categories, tags, passthrough and
    visibility, from 1;
    `submitted_digest` is of what the video was created with, once that has been edited.
    `poster_version` is 0 for the poster that transcoding chose, else the number of the request
    that it came from. `changed_at` is when a person last changed the metadata, the poster, or who
    may see it; None if nobody has. `updated_at` moves with every event of the video
    (`events.log`), and with its processing.

    `visibility` and `signed_in_only` say who may see it (`accounts.permissions`), `embed_origins`
    which sites may frame its player; empty leaves that to the portal's setting. `passthrough` is an
    integrator's own text, which nothing here reads.

    `search` and `sort_title` follow from title, description and tags and are written with them by
    `save`, and so by `create`; a query's `update` has to write `search.search_columns` itself.

    A video with `deleted_at` is hidden, and its deletion can be undone for a moment
    (`videos.deletion`). Its processing goes on meanwhile.
    """

    id = fields.UUIDField(primary_key=True)
    title = fields.TextField()
    description = fields.TextField()
    category_ids: list[int] = ArrayField("smallint")
    tags = fields.TextField()
    file_name = fields.CharField(max_length=255)
    storage_key = fields.CharField(max_length=400, unique=True)
    transcode_job_id = fields.BigIntField(unique=True)
    encode_job_id: int | None = fields.BigIntField(null=True)
    status = fields.CharEnumField(VideoStatus, max_length=10, default=VideoStatus.PROCESSING)
    size_bytes = fields.BigIntField()
    source_etag = fields.CharField(max_length=200)
    probe_answer: str | None = fields.TextField(null=True)
    duration_s: float | None = fields.FloatField(null=True)
    width: int | None = fields.IntField(null=True)
    height: int | None = fields.IntField(null=True)
    published_attempt: int | None = fields.BigIntField(null=True)
    failure_code = fields.CharField(max_length=60, null=True)
    failure_message: str | None = fields.TextField(null=True)
    notes: list[str] = ArrayField("text", default=list)
    has_poster = fields.BooleanField(default=False)
    has_storyboard = fields.BooleanField(default=False)
    storyboard_tries: int | None = fields.SmallIntField(null=True)
    complete_job_id: int | None = fields.BigIntField(null=True)
    captions_job_id: int | None = fields.BigIntField(null=True)
    forgiven_attempts = fields.BigIntField(default=0)
    metadata_version = fields.IntField(default=1)
    submitted_digest: str | None = fields.CharField(max_length=64, null=True)  # type: ignore[assignment]
    poster_version = fields.IntField(default=0)
    owner_id: UUID | None = fields.UUIDField(null=True)
    visibility = fields.CharEnumField(Visibility, max_length=10, default=Visibility.PUBLIC)
    signed_in_only = fields.BooleanField(default=False)
    embed_origins: list[str] = ArrayField("text", default=list)
    passthrough = fields.TextField(default="")
    search = TSVectorField(default="")
    sort_title = fields.TextField(default="")
    created_at: datetime = fields.DatetimeField()
    updated_at: datetime = fields.DatetimeField()
    changed_at: datetime | None = fields.DatetimeField(null=True)
    deleted_at: datetime | None = fields.DatetimeField(null=True)

    @property
    def first_job_id(self) -> int:
        """The job that makes the video playable: the look, or the encode it was left to."""
        return self.encode_job_id or self.transcode_job_id

    class Meta:
        table = "videos"
        # The library is read a page at a time, in each of its orders; the order by duration has
        # an index on an expression, which only the migration knows.
        indexes = (
            ("created_at", "id"),
            ("sort_title", "id"),
            ("status",),
            GinIndex(fields=["search"]),
            GinIndex(fields=["category_ids"]),
        )

    @classmethod
    def present(cls) -> QuerySet[Self]:
        """Those that are not deleted; for what people and programs see."""
        return cls.filter(deleted_at=None)

    async def save(
        self,
        using_db: BaseDBAsyncClient | None = None,
        update_fields: Iterable[str] | None = None,
        force_create: bool = False,
        force_update: bool = False,
    ) -> None:
        """Write the row, or these fields of it, and with them what is searched."""
        written = None if update_fields is None else set(update_fields)
        if written is None or not written.isdisjoint(SEARCHED_FIELDS):
            columns = search_columns(title=self.title, description=self.description, tags=self.tags)
            self.search, self.sort_title = columns["search"], columns["sort_title"]
            written = None if written is None else written | columns.keys()
        await super().save(using_db, written, force_create, force_update)


class Attempt(Model):
    """One pass over a video's source; its output lives under `hls/<video id>/<number>/`.

    Numbers ascend. A worker renews the lease while it works; an attempt whose lease expired may be
    taken over (see `maintenance.recovery`). The error is for the operator; editors are shown the
    video's failure. Of a swept attempt storage holds nothing but what is in use.
    """

    id = fields.BigIntField(primary_key=True)
    video: fields.ForeignKeyRelation[Video] = fields.ForeignKeyField(
        "portal.Video", related_name="attempts", on_delete=fields.CASCADE
    )
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

    video_id: UUID

    class Meta:
        table = "attempts"
        unique_together = (("video", "number"),)


class Rendition(Model):
    """One rendition of a video: planned after the first look at the source, measured when made.

    `attempt_number` is that of the last attempt that began to make it; one that is open is making
    it now. A complete rendition lies in the folder of the attempt of that number, which is the one
    whose segments later ones went on after. `tries` counts the attempts, released ones aside;
    `error_detail` is for the operator.
    """

    id = fields.BigIntField(primary_key=True)
    video: fields.ForeignKeyRelation[Video] = fields.ForeignKeyField(
        "portal.Video", related_name="renditions", on_delete=fields.CASCADE
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

    video_id: UUID

    class Meta:
        table = "renditions"
        unique_together = (("video", "name"),)
        ordering = ("position",)


class CaptionSource(StrEnum):
    """Where captions come from. Whatever a person has saved is an upload."""

    FILE = "file"
    UPLOAD = "upload"
    MACHINE = "machine"


class Caption(Model):
    """The captions of a video in one language, as WebVTT.

    `version` counts saves. Segments of `written_version`, of `size_bytes`, are in storage. A track
    of the uploaded file is copied from its `rendition`; its text is None until it is read. `tries`
    counts jobs in a row that stored no segment of `version`; the last one sets `error_code`.
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
    """The last poster that an editor asked for: the frame at a time, or a picture that was sent.

    `number` counts a video's requests and names the poster; no two ever share a name.
    """

    id = fields.BigIntField(primary_key=True)
    video: fields.OneToOneRelation[Video] = fields.OneToOneField(
        "portal.Video", related_name="poster_request", on_delete=fields.CASCADE
    )
    number = fields.IntField()
    # NULL for a picture that was sent.
    time_s: float | None = fields.FloatField(null=True)
    state = fields.CharEnumField(PosterState, max_length=10, default=PosterState.WAITING)
    tries = fields.IntField(default=0)
    job_id = fields.BigIntField()
    error_code = fields.CharField(max_length=60, null=True)

    video_id: UUID

    class Meta:
        table = "poster_requests"


class Deletion(Model):
    """A deleted video whose files are still to be removed from storage.

    A worker may have written more of them until `settles_at`; the removal ends after that.
    """

    video_id = fields.UUIDField(primary_key=True)
    storage_key = fields.CharField(max_length=400)
    job_id = fields.BigIntField()
    settles_at: datetime = fields.DatetimeField()

    class Meta:
        table = "deletions"


class Tombstone(Model):
    """A video that was deleted a while ago.

    The address that its file was uploaded to may still be valid, and a worker that stood still may
    still be writing. When neither can be, the janitor looks for files of it once more. Of the day
    in which it was published the quota of its account counts it still.
    """

    video_id = fields.UUIDField(primary_key=True)
    storage_key = fields.CharField(max_length=400)
    owner_id: UUID | None = fields.UUIDField(null=True)
    published_at: datetime | None = fields.DatetimeField(null=True)
    deleted_at: datetime = fields.DatetimeField()

    class Meta:
        table = "tombstones"
