"""Events: what happened, once. The audit log's table also tells what became of videos.

A row with a `type` is public. It is completed when its transaction commits: numbered under a lock,
so that numbers appear in their order and a reader who knows all up to one has missed none, and
given the video's record as it is then. What happens to a video while it is deleted is nobody's.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

EXTEND = """
ALTER TABLE audit_events
  ADD type varchar(30),
  ADD video_id uuid,
  ADD number bigint UNIQUE,
  ADD sequence bigint,
  ADD data jsonb
"""
RENAME = (
    "ALTER TABLE audit_events RENAME TO events",
    *(
        f"ALTER INDEX audit_events_{name} RENAME TO events_{name}"
        for name in ("pkey", "at_idx", "action_idx", "actor_idx", "object_idx", "object_name_idx")
    ),
)
INDEX = "CREATE INDEX events_video_idx ON events (video_id, sequence) WHERE type IS NOT NULL"
COMPLETE = """
CREATE SEQUENCE event_numbers;
CREATE FUNCTION complete_event() RETURNS trigger LANGUAGE plpgsql AS $$
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
      'created_at', created_at, 'updated_at', updated_at,
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
END $$;
CREATE CONSTRAINT TRIGGER complete_event AFTER INSERT ON events
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.type IS NOT NULL)
  EXECUTE FUNCTION complete_event()
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0010_since_0_4_0")]

    operations = [*map(ops.RunSQL, (EXTEND, *RENAME, INDEX, COMPLETE))]
