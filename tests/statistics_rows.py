"""Rows of statistics of a video or the library, as the fold writes them."""

# Ten viewers on each of the last days. All of them see the first half of the video, which the
# second tenth is played twice of, and six of them the second half. Playback stalls once on a phone,
# and fails once on a desktop.
ADD_DAYS = """
WITH added AS (
  SELECT %s::uuid AS video_id, (now() AT TIME ZONE 'UTC')::date - age AS day
  FROM generate_series(0, %s - 1) AS age
), startups AS (
  SELECT array_agg(CASE number WHEN 31 THEN 10 ELSE 0 END ORDER BY number) AS counts
  FROM generate_series(1, 76) AS number
), curves AS (
  SELECT array_agg(viewers ORDER BY part) AS seen,
         array_agg(CASE WHEN part BETWEEN 10 AND 19 THEN 2 * viewers ELSE viewers END ORDER BY part)
           AS plays
  FROM (SELECT part, CASE WHEN part < 50 THEN 10 ELSE 6 END AS viewers
        FROM generate_series(0, 99) AS part) AS parts
)
INSERT INTO video_days
SELECT video_id, day, kind, value, views, viewers, watch_ms, 80 * viewers, stalls, failures, 0,
       seen, plays, counts
FROM added, startups, curves, (VALUES
  ('all', '', 9, 10, 400000, 1, 1),
  ('device', 'phone', 6, 6, 300000, 1, 0), ('device', 'desktop', 3, 4, 100000, 0, 1),
  ('place', 'page', 5, 6, 300000, 1, 0), ('place', 'embed', 4, 4, 100000, 0, 1),
  ('site', 'blog.example', 4, 4, 100000, 0, 1),
  ('height', '720', 0, 0, 390000, 0, 0), ('height', '0', 0, 0, 10000, 0, 0)
) AS parts (kind, value, views, viewers, watch_ms, stalls, failures)
ON CONFLICT DO NOTHING
"""

# Sums of a video over its days, for the period of 28 days.
ADD_PERIOD = """
INSERT INTO video_periods
SELECT video_id, 28, sum(views), sum(viewers), sum(watch_ms), sum(share)
FROM video_days
WHERE video_id = %s AND kind = 'all' AND day > (now() AT TIME ZONE 'UTC')::date - 28
GROUP BY video_id
"""
