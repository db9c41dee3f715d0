"""Totals of ended attempts for the metrics, and an index of those that are not ended.

Attempts that ended before this are counted as far as their videos are still there.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

CREATE = """
CREATE TABLE attempt_totals (
  outcome varchar(12) NOT NULL,
  error_code varchar(60) NOT NULL,
  duration_range smallint NOT NULL,
  attempts bigint NOT NULL,
  duration_s double precision NOT NULL,
  media_s double precision NOT NULL,
  PRIMARY KEY (outcome, error_code, duration_range)
)
"""
COUNT_EARLIER = """
INSERT INTO attempt_totals
SELECT outcome, coalesce(error_code, ''),
       width_bucket(seconds, '{5,15,30,60,120,300,600,1800,3600,10800,43200}'::float8[]),
       count(*), sum(seconds),
       coalesce(sum(video_s) FILTER (WHERE outcome = 'published'), 0)
FROM (
  SELECT attempts.outcome, attempts.error_code, videos.duration_s AS video_s,
         extract(epoch FROM coalesce(finished_at, started_at) - started_at)::float8 AS seconds
  FROM attempts JOIN videos ON videos.id = attempts.video_id WHERE outcome IS NOT NULL
) AS ended
GROUP BY 1, 2, 3
"""
# Few, and looked for with every scrape.
INDEX_OPEN = "CREATE INDEX attempts_open_idx ON attempts (lease_expires_at) WHERE outcome IS NULL"


class Migration(migrations.Migration):
    dependencies = [("portal", "0008_janitor")]

    operations = [ops.RunSQL(CREATE), ops.RunSQL(COUNT_EARLIER), ops.RunSQL(INDEX_OPEN)]
