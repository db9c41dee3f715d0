"""Several old secrets of a webhook, each with its own end."""

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


class Migration(migrations.Migration):
    dependencies = [("portal", "0021_caption_tries")]

    operations = [*map(ops.RunSQL, SECRETS)]
