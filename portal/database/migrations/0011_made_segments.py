"""What is in storage of renditions that are being made, so that another pass can go on after it."""

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("portal", "0010_jobs")]

    operations = [
        ops.CreateModel(
            name="MadeSegment",
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
                        related_name="made_segments",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("rendition", fields.CharField(max_length=40)),
                ("number", fields.IntField()),
                ("folder", fields.IntField()),
                ("made_by", fields.IntField()),
                ("uri", fields.CharField(max_length=40)),
                ("size_bytes", fields.BigIntField()),
                ("key_size_bytes", fields.BigIntField()),
                ("sample_count", fields.IntField()),
                ("from_ticks", fields.BigIntField()),
                ("last_ticks", fields.BigIntField()),
                ("until_ticks", fields.BigIntField()),
            ],
            options={
                "table": "made_segments",
                "app": "portal",
                "unique_together": (("video", "rendition", "number"),),
                "pk_attr": "id",
                "table_description": "A segment in storage of a rendition that is being made.",
            },
            bases=["Model"],
        ),
    ]
