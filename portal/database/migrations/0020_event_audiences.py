"""Events by the present audience of their video: who could see it before, and no data afterwards.

An event that changes the audience keeps the one before in `was`: those who are no longer in it are
told that the video is gone. Of a deleted video events keep nothing but who could see it.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

ADD = "ALTER TABLE events ADD was jsonb"
AUDIENCE = """
CREATE FUNCTION event_audience(record jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(record)
  WHERE key IN ('visibility', 'signed_in_only', 'owner_id')
$$
"""
COMPLETE = """
CREATE OR REPLACE FUNCTION complete_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  is_deletion boolean := NEW.type = 'video.deleted';
  record jsonb;
  audience jsonb;
  last events%ROWTYPE;
BEGIN
  PERFORM pg_advisory_xact_lock(7102025113);
  SELECT * INTO last FROM events
    WHERE video_id = NEW.video_id AND type IS NOT NULL AND number IS NOT NULL
    ORDER BY sequence DESC LIMIT 1;
  SELECT jsonb_build_object(
      'id', id, 'title', title, 'description', description, 'category_ids', category_ids,
      'tags', tags, 'passthrough', passthrough, 'file_name', file_name,
      'storage_key', storage_key, 'transcode_job_id', transcode_job_id::text, 'status', status,
      'published_attempt', published_attempt, 'size_bytes', size_bytes,
      'created_at', created_at, 'updated_at', updated_at,
      'visibility', visibility, 'signed_in_only', signed_in_only, 'owner_id', owner_id)
    INTO record FROM videos
    WHERE id = NEW.video_id AND (deleted_at IS NULL OR is_deletion);
  IF record IS NULL AND NOT is_deletion THEN
    UPDATE events SET type = NULL WHERE id = NEW.id;
    RETURN NULL;
  END IF;
  record := coalesce(record, last.data, '{}');
  audience := event_audience(record);
  UPDATE events SET
      at = clock_timestamp(), number = nextval('event_numbers'),
      sequence = coalesce(last.sequence, 0) + 1,
      data = CASE WHEN is_deletion THEN audience ELSE record END,
      was = CASE WHEN is_deletion THEN audience
                 -- Videos from before there were events have none to compare with.
                 WHEN last.data IS NULL AND NEW.detail ? 'was' THEN audience
                   || jsonb_build_object('visibility', NEW.detail -> 'was', 'signed_in_only', false)
                 WHEN event_audience(last.data) <> audience THEN event_audience(last.data) END
    WHERE id = NEW.id;
  PERFORM pg_notify('portal_events', '');
  RETURN NULL;
END $$
"""
# What is recorded already, by the same rules.
FILL = """
UPDATE events SET was = earlier.audience
FROM (
  SELECT id, event_audience(data) AS own,
         event_audience(lag(data) OVER (PARTITION BY video_id ORDER BY sequence)) AS audience
  FROM events WHERE type IS NOT NULL AND number IS NOT NULL
) earlier
WHERE earlier.id = events.id AND type <> 'video.deleted' AND earlier.audience <> earlier.own
"""
FORGET = """
UPDATE events SET data = event_audience(data),
                  was = CASE WHEN type = 'video.deleted' THEN event_audience(data) ELSE was END
WHERE type IS NOT NULL AND number IS NOT NULL
  AND (type = 'video.deleted' OR video_id NOT IN (SELECT id FROM videos))
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0019_transcriptions")]

    operations = [*map(ops.RunSQL, (ADD, AUDIENCE, COMPLETE, FILL, FORGET))]
