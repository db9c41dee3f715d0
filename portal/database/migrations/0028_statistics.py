"""Statistics: the inbox of players' reports, viewers' days, and sums for videos and the library.

The inbox and the keys of visitors' hashes are unlogged: a crash of the database empties them.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

TABLES = """
CREATE UNLOGGED TABLE playback_inbox (
  video_id uuid NOT NULL,
  day date NOT NULL,
  visitor bytea NOT NULL,
  session bytea NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now(),
  device text NOT NULL,
  place text NOT NULL,
  site text NOT NULL,
  records jsonb NOT NULL
);
CREATE INDEX playback_inbox_received_idx ON playback_inbox (received_at);
CREATE UNLOGGED TABLE playback_salts (day date PRIMARY KEY, salt bytea NOT NULL);
CREATE TABLE viewer_days (
  day date NOT NULL,
  video_id uuid NOT NULL REFERENCES videos ON DELETE CASCADE,
  visitor bytea NOT NULL,
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  device text NOT NULL,
  place text NOT NULL,
  site text NOT NULL,
  watch_ms bigint NOT NULL,
  plays bytea NOT NULL,
  startup_ms integer NOT NULL,
  stalls integer NOT NULL,
  failures integer NOT NULL,
  heights jsonb NOT NULL,
  sessions jsonb NOT NULL,
  PRIMARY KEY (day, video_id, visitor)
);
CREATE INDEX viewer_days_video_idx ON viewer_days (video_id);
CREATE TABLE video_days (
  -- NULL for the sums of the library.
  video_id uuid REFERENCES videos ON DELETE CASCADE,
  day date NOT NULL,
  kind text NOT NULL,
  value text NOT NULL,
  views bigint NOT NULL,
  viewers bigint NOT NULL,
  watch_ms bigint NOT NULL,
  share bigint NOT NULL,
  stalls bigint NOT NULL,
  failures bigint NOT NULL,
  ignored bigint NOT NULL,
  seen bigint[],
  plays bigint[],
  startups bigint[],
  UNIQUE NULLS NOT DISTINCT (video_id, kind, day, value)
);
CREATE INDEX video_days_day_idx ON video_days (day) WHERE kind = 'all';
CREATE TABLE video_periods (
  video_id uuid NOT NULL REFERENCES videos ON DELETE CASCADE,
  period smallint NOT NULL,
  views bigint NOT NULL,
  viewers bigint NOT NULL,
  watch_ms bigint NOT NULL,
  share bigint NOT NULL,
  average_share double precision NOT NULL
    GENERATED ALWAYS AS (coalesce(share / nullif(100.0 * viewers, 0), 0)) STORED,
  PRIMARY KEY (period, video_id)
);
CREATE INDEX video_periods_video_idx ON video_periods (video_id);
-- Orders of `statistics.reading.Ranking`.
CREATE INDEX video_periods_views_idx ON video_periods (period, views, video_id);
CREATE INDEX video_periods_watch_idx ON video_periods (period, watch_ms, video_id);
CREATE INDEX video_periods_share_idx ON video_periods (period, average_share, video_id);
-- One row: the last day of all periods.
CREATE TABLE statistics_day (day date NOT NULL);
INSERT INTO statistics_day VALUES ((now() AT TIME ZONE 'UTC')::date);
ALTER TABLE videos ADD views bigint NOT NULL DEFAULT 0;
CREATE INDEX videos_views_idx ON videos (views, id);
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0027_storyboard_jobs")]

    operations = [ops.RunSQL(TABLES)]
