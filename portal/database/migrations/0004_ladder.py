"""Renditions belong to their video and have a state; what an editor may ask for again.

Renditions of ready videos are brought over as complete ones of their published attempt. Whether
there was sound was never recorded, only written into the master playlist in storage, so an old
video has no row for it. It plays on as before: its master playlist is not written again, since
nothing of it is missing.
"""

from tortoise import fields, migrations
from tortoise.contrib.postgres.fields import ArrayField
from tortoise.fields.base import OnDelete
from tortoise.fields.db_defaults import SqlDefault
from tortoise.migrations import operations as ops

from portal.database.models import RenditionState
from portal.transcoding.packaging.master import Kind

KEEP_RENDITIONS = """
CREATE TEMPORARY TABLE kept_renditions ON COMMIT DROP AS
SELECT rendition.*, attempt.video_id, attempt.number
FROM renditions rendition
JOIN attempts attempt ON attempt.id = rendition.attempt_id
JOIN videos video ON video.id = attempt.video_id AND video.published_attempt = attempt.number
"""
BRING_RENDITIONS = """
INSERT INTO renditions (video_id, kind, name, position, state, attempt_number, tries, copied,
                        width, height, frame_rate, codecs, bandwidth_bps, average_bandwidth_bps,
                        size_bytes, segment_count, is_default)
SELECT video_id, 'video', name, row_number() OVER (PARTITION BY video_id ORDER BY id) - 1,
       'complete', number, 1, false, width, height, frame_rate, codecs, bandwidth_bps,
       average_bandwidth_bps, size_bytes, segment_count, false
FROM kept_renditions
"""
# Every video so far was given a poster.
MARK_POSTERS = "UPDATE videos SET has_poster = true WHERE status = 'ready'"
# Those whose work is unfinished are few; every worker looks for them every few seconds.
INDEX_UNFINISHED = (
    "CREATE INDEX videos_processing_idx ON videos (transcode_job_id) WHERE status = 'processing'",
    "CREATE INDEX videos_completing_idx ON videos (complete_job_id) "
    "WHERE complete_job_id IS NOT NULL",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0003_queue")]

    operations = [
        ops.AddField(
            "Video", "notes", ArrayField(element_type="TEXT", db_default=SqlDefault("'{}'"))
        ),
        ops.AddField("Video", "has_poster", fields.BooleanField(db_default=False)),
        ops.AddField("Video", "has_storyboard", fields.BooleanField(db_default=False)),
        ops.AddField("Video", "complete_job_id", fields.BigIntField(null=True)),
        ops.AddField("Video", "forgiven_attempts", fields.IntField(db_default=0)),
        ops.AddField("Attempt", "error_code", fields.CharField(null=True, max_length=60)),
        ops.AddField("Attempt", "error_detail", fields.TextField(null=True, unique=False)),
        ops.RunSQL(KEEP_RENDITIONS),
        ops.DeleteModel("Rendition"),
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
                    "video",
                    fields.ForeignKeyField(
                        "portal.Video",
                        source_field="video_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="renditions",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("kind", fields.CharEnumField(enum_type=Kind, max_length=10)),
                ("name", fields.CharField(max_length=40)),
                ("position", fields.IntField()),
                (
                    "state",
                    fields.CharEnumField(
                        default=RenditionState.PLANNED, enum_type=RenditionState, max_length=10
                    ),
                ),
                ("attempt_number", fields.IntField(null=True)),
                ("tries", fields.IntField(default=0)),
                ("error_code", fields.CharField(null=True, max_length=60)),
                ("error_detail", fields.TextField(null=True, unique=False)),
                ("copied", fields.BooleanField(default=False)),
                ("width", fields.IntField(null=True)),
                ("height", fields.IntField(null=True)),
                ("frame_rate", fields.CharField(null=True, max_length=30)),
                ("codecs", fields.CharField(null=True, max_length=100)),
                ("bandwidth_bps", fields.BigIntField(null=True)),
                ("average_bandwidth_bps", fields.BigIntField(null=True)),
                ("iframe_bandwidth_bps", fields.BigIntField(null=True)),
                ("size_bytes", fields.BigIntField(null=True)),
                ("segment_count", fields.IntField(null=True)),
                ("channels", fields.IntField(null=True)),
                ("language", fields.CharField(null=True, max_length=60)),
                ("label", fields.TextField(null=True, unique=False)),
                ("is_default", fields.BooleanField(default=False)),
            ],
            options={
                "table": "renditions",
                "app": "portal",
                "unique_together": (("video", "name"),),
                "ordering": ("position",),
                "pk_attr": "id",
                "table_description": "One rendition of a video: planned after the first look at the source, measured when made.",
            },
            bases=["Model"],
        ),
        ops.RunSQL(BRING_RENDITIONS),
        ops.RunSQL(MARK_POSTERS),
        *(ops.RunSQL(statement) for statement in INDEX_UNFINISHED),
    ]
