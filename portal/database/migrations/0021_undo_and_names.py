"""Videos whose deletion can still be undone; names of people; an order by size."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops

NAME = "ALTER TABLE accounts ADD name varchar(100) NOT NULL DEFAULT ''"
INDEXES = (
    # Of the few that are deleted at any moment.
    "CREATE INDEX videos_deleted_idx ON videos (deleted_at) WHERE deleted_at IS NOT NULL",
    "CREATE INDEX videos_size_idx ON videos (size_bytes, id)",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0020_poster_pictures")]

    operations = [
        ops.AddField("Video", "deleted_at", fields.DatetimeField(null=True)),
        *map(ops.RunSQL, (NAME, *INDEXES)),
    ]
