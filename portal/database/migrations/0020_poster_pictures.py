"""Pictures that were sent to become a video's poster, until a worker has made it of them."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops

CREATE = """
CREATE TABLE poster_pictures (
  video_id uuid PRIMARY KEY REFERENCES videos (id) ON DELETE CASCADE,
  content bytea NOT NULL
)
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0019_changed_at")]

    operations = [
        ops.AlterField("PosterRequest", "time_s", fields.FloatField(null=True)),
        ops.RunSQL(CREATE),
    ]
