"""Imports: files that the portal fetches, until there is a video of each."""

from tortoise import migrations
from tortoise.migrations import operations as ops

CREATE = """
CREATE TABLE imports (
  id uuid PRIMARY KEY,
  storage_key varchar(400) NOT NULL UNIQUE REFERENCES uploads (key) ON DELETE CASCADE,
  url text NOT NULL,
  asked jsonb NOT NULL,
  validator text NOT NULL,
  whole_bytes bigint,
  received_bytes bigint NOT NULL,
  started_at timestamptz,
  active_at timestamptz NOT NULL,
  error_code varchar(60),
  error_message text
)
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0014_webhooks")]

    operations = [ops.RunSQL(CREATE)]
