"""Who may see a video, and which sites may frame its player."""

from tortoise import fields, migrations
from tortoise.contrib.postgres.fields import ArrayField
from tortoise.migrations import operations as ops

# What those see who are not signed in, in the library's usual order.
INDEX_PUBLIC = """
CREATE INDEX videos_public_idx ON videos (created_at, id) WHERE visibility = 'public'
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0012_accounts")]

    operations = [
        ops.AddField("Video", "visibility", fields.CharField(max_length=10, db_default="public")),
        ops.AddField("Video", "signed_in_only", fields.BooleanField(db_default=False)),
        ops.AddField("Video", "embed_origins", ArrayField("text", db_default=[])),
        ops.RunSQL(INDEX_PUBLIC),
    ]
