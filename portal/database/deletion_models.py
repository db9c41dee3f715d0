"""The tables of what is left of deleted videos until the last file of theirs is gone."""

from datetime import datetime
from uuid import UUID

from tortoise import fields
from tortoise.models import Model


class Deletion(Model):
    """A deleted video whose files are still to be removed from storage.

    A worker may have written more of them until `settles_at`; the removal ends after that. The
    lease is renewed while files are being removed.
    """

    video_id = fields.UUIDField(primary_key=True)
    storage_key = fields.CharField(max_length=400)
    job_id = fields.BigIntField()
    settles_at: datetime = fields.DatetimeField()
    lease_expires_at: datetime = fields.DatetimeField()

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
