"""Times at which videos become public or private, or are deleted."""

from tortoise import migrations
from tortoise.migrations import operations as ops

TABLE = """
CREATE TABLE schedules (
  video_id uuid PRIMARY KEY REFERENCES publications ON DELETE CASCADE,
  publish_at timestamptz,
  unpublish_at timestamptz,
  delete_at timestamptz,
  noticed_at timestamptz
)
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0043_series")]

    operations = [ops.RunSQL(TABLE)]
