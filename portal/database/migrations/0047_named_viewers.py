"""Viewers whom another system names in playback links, and what named viewers have watched."""

from tortoise import migrations
from tortoise.migrations import operations as ops

TABLES = """
ALTER TABLE playback_links ADD is_for_viewers boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX playback_links_viewers ON playback_links (video_id) WHERE is_for_viewers;
-- Key and label; NULL for viewers without a name.
ALTER TABLE playback_inbox ADD named_viewer jsonb;
CREATE TABLE named_viewers (
  number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  video_id uuid NOT NULL REFERENCES publications ON DELETE CASCADE,
  viewer text NOT NULL,
  label text NOT NULL,
  account_id uuid REFERENCES accounts ON DELETE CASCADE,
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  watch_ms bigint NOT NULL,
  seen bit(100) NOT NULL,
  PRIMARY KEY (video_id, viewer)
);
CREATE INDEX named_viewers_account ON named_viewers (account_id) WHERE account_id IS NOT NULL;
CREATE INDEX named_viewers_last ON named_viewers (last_at);
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0046_guests")]

    operations = [ops.RunSQL(TABLES)]
