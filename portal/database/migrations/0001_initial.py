"""The first tables."""

from uuid import uuid4

from tortoise import fields, migrations
from tortoise.contrib.postgres.fields import ArrayField
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from portal.database.models import Outcome, VideoStatus


class Migration(migrations.Migration):
    initial = True

    operations = [
        ops.CreateModel(
            name="Category",
            fields=[
                ("id", fields.SmallIntField(primary_key=True, generated=False)),
                ("name", fields.CharField(unique=True, max_length=100)),
            ],
            options={
                "table": "categories",
                "app": "portal",
                "pk_attr": "id",
                "table_description": "A row of the fixed category table; laid by a migration, never edited by the portal.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Upload",
            fields=[
                (
                    "key",
                    fields.CharField(primary_key=True, unique=True, db_index=True, max_length=400),
                ),
                ("file_name", fields.CharField(max_length=255)),
                ("content_type", fields.CharField(max_length=40)),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=True)),
            ],
            options={
                "table": "uploads",
                "app": "portal",
                "pk_attr": "key",
                "table_description": "A storage key issued by the portal, whether or not a file has arrived under it.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Video",
            fields=[
                (
                    "id",
                    fields.UUIDField(primary_key=True, default=uuid4, unique=True, db_index=True),
                ),
                ("title", fields.TextField(unique=False)),
                ("description", fields.TextField(unique=False)),
                ("category_ids", ArrayField(element_type="SMALLINT")),
                ("tags", fields.TextField(unique=False)),
                ("file_name", fields.CharField(max_length=255)),
                (
                    "upload",
                    fields.OneToOneField(
                        "portal.Upload",
                        source_field="storage_key",
                        db_constraint=True,
                        to_field="key",
                        related_name="video",
                        on_delete=OnDelete.RESTRICT,
                    ),
                ),
                ("transcode_job_id", fields.BigIntField(unique=True)),
                (
                    "status",
                    fields.CharEnumField(
                        default=VideoStatus.PROCESSING,
                        description="PROCESSING: processing\nREADY: ready\nFAILED: failed",
                        enum_type=VideoStatus,
                        max_length=10,
                    ),
                ),
                ("size_bytes", fields.BigIntField()),
                ("source_etag", fields.CharField(max_length=200)),
                ("duration_s", fields.FloatField(null=True)),
                ("width", fields.IntField(null=True)),
                ("height", fields.IntField(null=True)),
                ("published_attempt", fields.IntField(null=True)),
                ("failure_code", fields.CharField(null=True, max_length=60)),
                ("failure_message", fields.TextField(null=True, unique=False)),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("updated_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "videos",
                "app": "portal",
                "indexes": [Index(fields=["created_at", "id"])],
                "pk_attr": "id",
                "table_description": "A published video: what was submitted, and what became of its transcoding.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "video",
                    fields.ForeignKeyField(
                        "portal.Video",
                        source_field="video_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="attempts",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("number", fields.IntField()),
                ("worker", fields.CharField(max_length=200)),
                ("lease_expires_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("stage", fields.CharField(max_length=20)),
                ("percent", fields.FloatField(default=0.0)),
                ("eta_s", fields.FloatField(null=True)),
                ("started_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                (
                    "finished_at",
                    fields.DatetimeField(null=True, auto_now=False, auto_now_add=False),
                ),
                ("outcome", fields.CharEnumField(enum_type=Outcome, max_length=12, null=True)),
            ],
            options={
                "table": "attempts",
                "app": "portal",
                "unique_together": (("video", "number"),),
                "pk_attr": "id",
                "table_description": "One try at transcoding a video; its output lives under `hls/<video id>/<number>/`.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Rendition",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "attempt",
                    fields.ForeignKeyField(
                        "portal.Attempt",
                        source_field="attempt_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="renditions",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("name", fields.CharField(max_length=40)),
                ("width", fields.IntField()),
                ("height", fields.IntField()),
                ("frame_rate", fields.CharField(max_length=30)),
                ("codecs", fields.CharField(max_length=100)),
                ("bandwidth_bps", fields.BigIntField()),
                ("average_bandwidth_bps", fields.BigIntField()),
                ("size_bytes", fields.BigIntField()),
                ("segment_count", fields.IntField()),
            ],
            options={
                "table": "renditions",
                "app": "portal",
                "unique_together": (("attempt", "name"),),
                "pk_attr": "id",
                "table_description": "One finished rendition of an attempt, as measured from what was written.",
            },
            bases=["Model"],
        ),
    ]
