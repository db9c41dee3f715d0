"""Captions, posters and viewers' days of videos that can be cut.

Until now the share of a video that a viewer had seen was counted in the parts that they played.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

CAPTIONS = "ALTER TABLE captions ADD whole_text text;"
POSTERS = """
ALTER TABLE publications ADD poster_time_s double precision;
UPDATE publications SET poster_time_s = time_s FROM poster_requests
WHERE video_id = publications.id AND number = poster_version AND state = 'done';
"""
VIEWERS = """
ALTER TABLE viewer_days ADD seen smallint;
UPDATE viewer_days SET seen = (
  SELECT count(*) FROM generate_series(0, 99) AS place WHERE get_byte(plays, place) > 0
);
ALTER TABLE viewer_days ALTER seen SET NOT NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0033_cuts")]

    operations = [*map(ops.RunSQL, (CAPTIONS, POSTERS, VIEWERS))]
