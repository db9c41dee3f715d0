"""Several old secrets of a webhook, each with its own end; and events of failed imports.

A failed import has no video, so its event brings its own data and is only numbered.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

SECRETS = (
    "ALTER TABLE webhooks ADD old_secrets jsonb NOT NULL DEFAULT '[]'",
    """
    UPDATE webhooks SET old_secrets = jsonb_build_array(
      jsonb_build_object('secret', old_secret, 'until', old_secret_until)
    ) WHERE old_secret_until > now()
    """,
    "ALTER TABLE webhooks DROP old_secret, DROP old_secret_until",
)
NUMBER = """
CREATE FUNCTION number_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7102025113);
  UPDATE events SET at = clock_timestamp(), number = nextval('event_numbers'), sequence = 1
    WHERE id = NEW.id;
  PERFORM pg_notify('portal_events', '');
  RETURN NULL;
END $$
"""
TRIGGERS = """
DROP TRIGGER complete_event ON events;
CREATE CONSTRAINT TRIGGER complete_event AFTER INSERT ON events
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.type LIKE 'video.%')
  EXECUTE FUNCTION complete_event();
CREATE CONSTRAINT TRIGGER number_event AFTER INSERT ON events
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.type LIKE 'import.%')
  EXECUTE FUNCTION number_event()
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0020_event_audiences")]

    operations = [*map(ops.RunSQL, (*SECRETS, NUMBER, TRIGGERS))]
