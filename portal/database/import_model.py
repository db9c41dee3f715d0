"""The table of imports."""

from datetime import datetime
from typing import Any

from tortoise import fields
from tortoise.models import Model

from portal.database.models import Upload


class Import(Model):
    """A file that the portal fetches from `url` into an upload, to make the video `id` of it.

    `asked` is what the video is created with. `whole_bytes` is None until the server has told it.
    `received_bytes` of them are in storage, of the version that `validator` names: an ETag or a
    time, for If-Range. Whoever fetches sets `active_at` with each part, and leaves off once someone
    else has done so. The row goes when the video comes; one with an error goes with its upload.
    """

    id = fields.UUIDField(primary_key=True)
    upload: fields.OneToOneRelation[Upload] = fields.OneToOneField(
        "portal.Upload", related_name="fetched_by", source_field="storage_key"
    )
    url = fields.TextField()
    asked: dict[str, Any] = fields.JSONField()
    validator = fields.TextField(default="")
    whole_bytes: int | None = fields.BigIntField(null=True)
    received_bytes = fields.BigIntField(default=0)
    started_at: datetime | None = fields.DatetimeField(null=True)
    active_at = fields.DatetimeField(auto_now_add=True)
    error_code: str | None = fields.CharField(max_length=60, null=True)  # type: ignore[assignment]
    error_message: str | None = fields.TextField(null=True)

    upload_id: str

    class Meta:
        table = "imports"
