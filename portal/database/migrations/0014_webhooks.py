"""Webhooks, and their deliveries, which are made in the transaction that makes an event.

A delivery that has a time to be sent at has a job at that time, however the time was set.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

TABLES = (
    """
    CREATE TABLE webhooks (
      id uuid PRIMARY KEY,
      account_id uuid REFERENCES accounts (id) ON DELETE CASCADE,
      url text NOT NULL,
      events text[] NOT NULL,
      secret text NOT NULL,
      old_secret text,
      old_secret_until timestamptz,
      created_at timestamptz NOT NULL,
      failing_since timestamptz,
      disabled_reason text
    )
    """,
    # Without a foreign key: events go after their own time.
    """
    CREATE TABLE webhook_deliveries (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      webhook_id uuid NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
      event_number bigint,
      type varchar(30) NOT NULL,
      lane smallint NOT NULL DEFAULT floor(random() * 4),
      created_at timestamptz NOT NULL DEFAULT now(),
      tries smallint NOT NULL DEFAULT 0,
      next_at timestamptz DEFAULT now(),
      sent_at timestamptz,
      duration_ms int,
      status smallint,
      headers text NOT NULL DEFAULT '',
      answer text NOT NULL DEFAULT '',
      error text NOT NULL DEFAULT ''
    )
    """,
    "CREATE INDEX webhook_deliveries_webhook_idx ON webhook_deliveries (webhook_id, id)",
    "CREATE INDEX webhook_deliveries_due_idx ON webhook_deliveries (webhook_id, lane, id) "
    "WHERE next_at IS NOT NULL",
    "CREATE INDEX webhook_deliveries_created_idx ON webhook_deliveries (created_at)",
)
# A row that someone deletes or disables at this moment is waited for, and then seen as it is.
DELIVER = """
CREATE FUNCTION deliver_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO webhook_deliveries (webhook_id, event_number, type)
    SELECT id, NEW.number, NEW.type FROM webhooks
    WHERE disabled_reason IS NULL AND NEW.type = ANY (events)
    FOR SHARE;
  RETURN NULL;
END $$;
CREATE TRIGGER deliver_event AFTER UPDATE OF number ON events
  FOR EACH ROW WHEN (OLD.number IS NULL AND NEW.number IS NOT NULL)
  EXECUTE FUNCTION deliver_event()
"""
# A job sends what is due in its lane. Of those with the same lock one runs at a time, so a slow
# receiver has four at most, and one waits at most: it can't begin before the transactions that rely
# on it have ended, of which the last wakes the worker again. (Two that are first make one each.)
# A job that waits for its time would hold up others with its lock, but not those of a higher
# priority: what is due at once, and what is due earlier.
ENQUEUE = """
CREATE FUNCTION enqueue_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER enqueue_delivery AFTER INSERT OR UPDATE OF next_at ON webhook_deliveries
  FOR EACH ROW WHEN (NEW.next_at IS NOT NULL)
  EXECUTE FUNCTION enqueue_delivery()
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0013_idempotency_keys")]

    operations = [*map(ops.RunSQL, (*TABLES, DELIVER, ENQUEUE))]
