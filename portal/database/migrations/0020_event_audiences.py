"""Previous audiences of videos, for events that change the audience.

Events of deleted videos keep nothing but who could see the video.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

AUDIENCE = """(
  SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(data)
  WHERE key IN ('visibility', 'signed_in_only', 'owner_id')
)"""
ADD = "ALTER TABLE events ADD was jsonb"
FILL = f"""
UPDATE events SET was = changes.previous
FROM (
  SELECT id, audience, lag(audience) OVER (PARTITION BY video_id ORDER BY sequence) AS previous
  FROM (
    SELECT id, video_id, sequence, {AUDIENCE} AS audience FROM events
    WHERE type IS NOT NULL AND number IS NOT NULL
  ) audiences
) changes
WHERE changes.id = events.id AND type <> 'video.deleted' AND previous <> audience
"""  # noqa: S608 - put together from constants
FORGET = f"""
UPDATE events SET data = {AUDIENCE},
                  was = CASE WHEN type = 'video.deleted' THEN {AUDIENCE} ELSE was END
WHERE type IS NOT NULL AND number IS NOT NULL
  AND (type = 'video.deleted' OR video_id NOT IN (SELECT id FROM videos))
"""  # noqa: S608 - put together from constants


class Migration(migrations.Migration):
    dependencies = [("portal", "0019_transcriptions")]

    operations = [ops.RunSQL(ADD), ops.RunSQL(FILL), ops.RunSQL(FORGET)]
