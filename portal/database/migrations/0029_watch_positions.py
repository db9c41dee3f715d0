"""Positions of accounts in the videos that they watch; one of 0 is that of a finished video."""

from tortoise import migrations
from tortoise.migrations import operations as ops

TABLE = """
CREATE TABLE watch_positions (
  account_id uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  video_id uuid NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
  position_s integer NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, video_id)
);
CREATE INDEX watch_positions_video ON watch_positions (video_id);
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0028_statistics")]

    operations = [ops.RunSQL(TABLE)]
