"""Keys of private feeds, and the time until which feeds keep files for download."""

from tortoise import migrations
from tortoise.migrations import operations as ops

FEEDS = """
CREATE TABLE feed_keys (
  account_id uuid PRIMARY KEY REFERENCES accounts ON DELETE CASCADE,
  digest text NOT NULL UNIQUE
);
ALTER TABLE downloads ADD kept_until timestamptz;
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0048_approval")]

    operations = [ops.RunSQL(FEEDS)]
