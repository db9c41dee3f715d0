"""Series: ordered lists of videos, with an audience of their own."""

from tortoise import migrations
from tortoise.migrations import operations as ops

TABLES = """
CREATE TABLE series (
  id uuid PRIMARY KEY,
  title text NOT NULL,
  description text NOT NULL DEFAULT '',
  visibility varchar(10) NOT NULL,
  signed_in_only boolean NOT NULL DEFAULT false,
  owner_id uuid REFERENCES accounts ON DELETE SET NULL,
  admitted_ids uuid[] NOT NULL DEFAULT '{}',
  editor_ids uuid[] NOT NULL DEFAULT '{}',
  version integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX series_newest ON series (created_at, id);
CREATE INDEX series_owner ON series (owner_id);
CREATE TABLE series_videos (
  series_id uuid REFERENCES series ON DELETE CASCADE,
  video_id uuid REFERENCES publications ON DELETE CASCADE,
  position integer NOT NULL,
  PRIMARY KEY (series_id, video_id)
);
CREATE INDEX series_videos_video ON series_videos (video_id);
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0042_groups")]

    operations = [ops.RunSQL(TABLES)]
