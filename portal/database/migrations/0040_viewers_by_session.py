"""Viewers are sessions of visitors. The viewers that an hour brings from a network are limited.

The table of these numbers is unlogged and emptied daily, like the keys of the networks' hashes.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

TABLES = """
ALTER TABLE viewer_days RENAME visitor TO viewer;
ALTER TABLE viewer_days DROP sessions;
-- NULL for days of visitors, which are not read again.
ALTER TABLE viewer_days ADD session jsonb;
ALTER TABLE playback_inbox ADD networks bytea[] NOT NULL DEFAULT '{}';
ALTER TABLE playback_inbox ALTER records TYPE text;
CREATE UNLOGGED TABLE network_hours (
  hour timestamptz NOT NULL,
  network bytea NOT NULL,
  viewers integer NOT NULL,
  PRIMARY KEY (hour, network)
);
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0039_recent_requests")]

    operations = [ops.RunSQL(TABLES)]
