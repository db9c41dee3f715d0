"""Passthrough: an integrator's own text with a video, which its events tell, too."""

from tortoise import migrations
from tortoise.migrations import operations as ops

ADD = "ALTER TABLE videos ADD passthrough text NOT NULL DEFAULT ''"
COMPLETE = """
CREATE OR REPLACE FUNCTION complete_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  record jsonb;
  last events%ROWTYPE;
BEGIN
  PERFORM pg_advisory_xact_lock(7102025113);
  SELECT * INTO last FROM events
    WHERE video_id = NEW.video_id AND type IS NOT NULL AND number IS NOT NULL
    ORDER BY sequence DESC LIMIT 1;
  SELECT jsonb_build_object(
      'id', id, 'title', title, 'description', description, 'category_ids', category_ids,
      'tags', tags, 'file_name', file_name, 'storage_key', storage_key,
      'transcode_job_id', transcode_job_id::text, 'status', status,
      'published_attempt', published_attempt, 'size_bytes', size_bytes,
      'created_at', created_at, 'updated_at', updated_at, 'passthrough', passthrough,
      'visibility', visibility, 'signed_in_only', signed_in_only, 'owner_id', owner_id)
    INTO record FROM videos
    WHERE id = NEW.video_id AND (deleted_at IS NULL OR NEW.type = 'video.deleted');
  IF record IS NULL AND NEW.type <> 'video.deleted' THEN
    UPDATE events SET type = NULL WHERE id = NEW.id;
    RETURN NULL;
  END IF;
  UPDATE events SET
      at = clock_timestamp(), number = nextval('event_numbers'),
      sequence = coalesce(last.sequence, 0) + 1, data = coalesce(record, last.data, '{}')
    WHERE id = NEW.id;
  PERFORM pg_notify('portal_events', '');
  RETURN NULL;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0011_events")]

    operations = [ops.RunSQL(ADD), ops.RunSQL(COMPLETE)]
