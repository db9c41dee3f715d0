"""What the janitor goes by: signs of life of uploads, attempts not yet swept, deleted videos."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops

# Uploads under way at this moment are given time to go on.
MARK_ACTIVE = "UPDATE uploads SET active_at = now() WHERE multipart_id IS NOT NULL"
# Its query is no longer asked: every upload without a video is looked at by its key now.
DROP_INDEX = "DROP INDEX uploads_unfinished_idx"
INDEX_UNSWEPT = "CREATE INDEX attempts_unswept_idx ON attempts (video_id) WHERE NOT is_swept"


class Migration(migrations.Migration):
    dependencies = [("portal", "0007_editing")]

    operations = [
        ops.AddField("Upload", "active_at", fields.DatetimeField(null=True)),
        ops.AddField("Attempt", "is_swept", fields.BooleanField(db_default=False)),
        ops.CreateModel(
            name="Tombstone",
            fields=[
                (
                    "video_id",
                    fields.UUIDField(primary_key=True, unique=True, db_index=True),
                ),
                ("storage_key", fields.CharField(max_length=400)),
                ("deleted_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "tombstones",
                "app": "portal",
                "pk_attr": "video_id",
                "table_description": "A video that was deleted a while ago.",
            },
            bases=["Model"],
        ),
        *(ops.RunSQL(statement) for statement in (MARK_ACTIVE, DROP_INDEX, INDEX_UNSWEPT)),
    ]
