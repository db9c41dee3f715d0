"""Changes by editors: metadata, posters of their choice, and videos on their way out.

Metadata of before this has never been edited, so its version is 1 and it is what was submitted.
"""

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.migrations import operations as ops

from portal.database.models import PosterState


class Migration(migrations.Migration):
    dependencies = [("portal", "0006_search")]

    operations = [
        ops.AddField("Video", "metadata_version", fields.IntField(db_default=1)),
        ops.AddField("Video", "submitted_digest", fields.CharField(null=True, max_length=64)),
        ops.AddField("Video", "poster_version", fields.IntField(db_default=0)),
        ops.CreateModel(
            name="PosterRequest",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "video",
                    fields.OneToOneField(
                        "portal.Video",
                        source_field="video_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="poster_request",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("number", fields.IntField()),
                ("time_s", fields.FloatField()),
                (
                    "state",
                    fields.CharEnumField(
                        default=PosterState.WAITING, enum_type=PosterState, max_length=10
                    ),
                ),
                ("tries", fields.IntField(default=0)),
                ("job_id", fields.BigIntField()),
                ("lease_expires_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("error_code", fields.CharField(null=True, max_length=60)),
            ],
            options={
                "table": "poster_requests",
                "app": "portal",
                "pk_attr": "id",
                "table_description": "The last poster that an editor asked for from the playhead of a video's player.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Deletion",
            fields=[
                (
                    "video_id",
                    fields.UUIDField(primary_key=True, unique=True, db_index=True),
                ),
                ("storage_key", fields.CharField(max_length=400)),
                ("job_id", fields.BigIntField()),
                ("settles_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("lease_expires_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "deletions",
                "app": "portal",
                "pk_attr": "video_id",
                "table_description": "A deleted video whose files are still to be removed from storage.",
            },
            bases=["Model"],
        ),
    ]
