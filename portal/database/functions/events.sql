-- Events are numbered, and completed with the video's record, when their transaction commits.
--
-- Both functions take the same advisory lock until the end of the transaction. Event numbers
-- therefore become visible in ascending order: a reader that has seen all events up to a number
-- has missed none. Constraint triggers that are deferred run them as late as possible.

-- Return the members of a video's record that decide who may see the video.
CREATE OR REPLACE FUNCTION event_audience(record jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(record)
  WHERE key IN ('visibility', 'signed_in_only', 'owner_id')
$$;

-- Number an event of a video, and store the video's record as it is at the commit.
--
-- `was` is the previous audience if the event changes the audience: those who lose sight of the
-- video learn that it is gone. The event of a deletion stores nothing but the audience. Other
-- events of a video that is deleted by now lose their type, which makes them private.
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
                 -- Videos that are older than the first events have no event to compare with.
                 WHEN last.data IS NULL AND NEW.detail ? 'was' THEN audience
                   || jsonb_build_object('visibility', NEW.detail -> 'was', 'signed_in_only', false)
                 WHEN event_audience(last.data) <> audience THEN event_audience(last.data) END
    WHERE id = NEW.id;
  PERFORM pg_notify('portal_events', '');
  RETURN NULL;
END $$;

-- Number an event of a failed import. It has no video and brings its own data.
CREATE OR REPLACE FUNCTION number_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7102025113);
  UPDATE events SET at = clock_timestamp(), number = nextval('event_numbers'), sequence = 1
    WHERE id = NEW.id;
  PERFORM pg_notify('portal_events', '');
  RETURN NULL;
END $$;

DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_trigger
                 WHERE tgrelid = 'events'::regclass AND tgname = 'complete_event') THEN
    CREATE CONSTRAINT TRIGGER complete_event AFTER INSERT ON events
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.type LIKE 'video.%')
      EXECUTE FUNCTION complete_event();
  END IF;
  IF NOT EXISTS (SELECT FROM pg_trigger
                 WHERE tgrelid = 'events'::regclass AND tgname = 'number_event') THEN
    CREATE CONSTRAINT TRIGGER number_event AFTER INSERT ON events
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.type LIKE 'import.%')
      EXECUTE FUNCTION number_event();
  END IF;
END $$;
