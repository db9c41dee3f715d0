-- Deliveries of an event, and the jobs that send them, are created in the event's transaction.

-- Create a delivery of a numbered event for each webhook that subscribes to its type.
--
-- `FOR SHARE` waits for a transaction that deletes or disables a webhook, and sees its result.
CREATE OR REPLACE FUNCTION deliver_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO webhook_deliveries (webhook_id, event_number, type)
    SELECT id, NEW.number, NEW.type FROM webhooks
    WHERE disabled_reason IS NULL AND NEW.type = ANY (events)
    FOR SHARE;
  RETURN NULL;
END $$;

-- Enqueue the job that sends a delivery at its `next_at`.
--
-- A job sends everything that is due in its lane, and jobs of one lane share a lock, so that a
-- slow receiver occupies at most four workers. If a job of the lane is still waiting to start, it
-- sends this delivery too: `FOR KEY SHARE` keeps it from starting before this transaction has
-- ended. Two transactions that enqueue the first job of a lane at once create one job each.
--
-- A job that is scheduled for later holds up jobs with the same lock unless they have a higher
-- priority. Priorities therefore descend with `next_at`, and jobs that are due have the highest.
CREATE OR REPLACE FUNCTION enqueue_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lane_lock text := 'webhook:' || NEW.webhook_id || ':' || NEW.lane;
  is_due boolean := NEW.next_at <= now();
BEGIN
  PERFORM FROM procrastinate_jobs
    WHERE is_due AND lock = lane_lock AND status = 'todo' AND priority = 0
    LIMIT 1 FOR KEY SHARE;
  IF FOUND THEN
    PERFORM pg_notify('procrastinate_queue_v1#webhooks', '{"type": "job_inserted"}');
    RETURN NULL;
  END IF;
  PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
    'webhooks', 'portal:send_webhook',
    CASE WHEN is_due THEN 0 ELSE -extract(epoch FROM NEW.next_at - '2020-01-01')::int END,
    lane_lock, NULL, jsonb_build_object('webhook_id', NEW.webhook_id, 'lane', NEW.lane), NEW.next_at
  )::procrastinate_job_to_defer_v1]);
  RETURN NULL;
END $$;

DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_trigger
                 WHERE tgrelid = 'events'::regclass AND tgname = 'deliver_event') THEN
    CREATE TRIGGER deliver_event AFTER UPDATE OF number ON events
      FOR EACH ROW WHEN (OLD.number IS NULL AND NEW.number IS NOT NULL)
      EXECUTE FUNCTION deliver_event();
  END IF;
  IF NOT EXISTS (SELECT FROM pg_trigger
                 WHERE tgrelid = 'webhook_deliveries'::regclass AND tgname = 'enqueue_delivery') THEN
    CREATE TRIGGER enqueue_delivery AFTER INSERT OR UPDATE OF next_at ON webhook_deliveries
      FOR EACH ROW WHEN (NEW.next_at IS NOT NULL)
      EXECUTE FUNCTION enqueue_delivery();
  END IF;
END $$;
