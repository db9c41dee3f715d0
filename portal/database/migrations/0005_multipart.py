"""Uploads in parts."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops

# An upload is addressed by the unique id inside its key, `videos/<32 hex digits>.<extension>`.
INDEX_IDS = "CREATE INDEX uploads_id_idx ON uploads (substr(key, 8, 32))"

# Unfinished ones are few; every worker looks for those that were abandoned.
INDEX_UNFINISHED = (
    "CREATE INDEX uploads_unfinished_idx ON uploads (created_at) WHERE multipart_id IS NOT NULL"
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0004_ladder")]

    operations = [
        ops.AddField("Upload", "multipart_id", fields.TextField(null=True, unique=False)),
        ops.AddField("Upload", "size_bytes", fields.BigIntField(null=True)),
        ops.AddField("Upload", "is_discarded", fields.BooleanField(db_default=False)),
        ops.RunSQL(INDEX_IDS),
        ops.RunSQL(INDEX_UNFINISHED),
    ]
