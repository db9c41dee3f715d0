"""Whose a deleted video was and when it was published: it counts for the rest of its day."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("portal", "0014_playback_links")]

    operations = [
        ops.AddField("Tombstone", "owner_id", fields.UUIDField(null=True)),
        ops.AddField("Tombstone", "published_at", fields.DatetimeField(null=True)),
        ops.RunSQL(
            "CREATE INDEX tombstones_owner_idx ON tombstones (owner_id) WHERE owner_id IS NOT NULL"
        ),
    ]
