"""The answers to requests with an Idempotency-Key; without a status one is still to come."""

from tortoise import migrations
from tortoise.migrations import operations as ops

# On a portal without accounts, the account is the nil UUID.
CREATE = """
CREATE TABLE idempotency_keys (
  account_id uuid NOT NULL,
  key varchar(255) NOT NULL,
  fingerprint bytea NOT NULL,
  began_at timestamptz NOT NULL DEFAULT now(),
  status smallint,
  headers jsonb,
  body bytea,
  PRIMARY KEY (account_id, key)
)
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0012_passthrough")]

    operations = [ops.RunSQL(CREATE)]
