"""Several old secrets of a webhook, each with its own end; and events of failed imports."""

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
# The trigger of 0.5.0 also fires for events of imports.
DROP_TRIGGER = "DROP TRIGGER IF EXISTS complete_event ON events"


class Migration(migrations.Migration):
    dependencies = [("portal", "0020_event_audiences")]

    operations = [*map(ops.RunSQL, (*SECRETS, DROP_TRIGGER))]
