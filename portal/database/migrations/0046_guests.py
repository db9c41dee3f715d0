"""Guests, with whom videos are shared by their e-mail addresses."""

from tortoise import migrations
from tortoise.migrations import operations as ops

GUESTS = """
CREATE TABLE guests (
  id uuid PRIMARY KEY,
  email text NOT NULL,
  link_digest text NOT NULL UNIQUE,
  code_digest text NOT NULL,
  session_digest text UNIQUE,
  created_at timestamptz NOT NULL DEFAULT now(),
  bound_at timestamptz
);
CREATE INDEX guests_email ON guests (email);
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0045_passwords")]

    operations = [ops.RunSQL(GUESTS)]
