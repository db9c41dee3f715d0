"""Groups of accounts, and the accounts and groups that videos are shared with."""

from tortoise import migrations
from tortoise.migrations import operations as ops

TABLES = """
CREATE TABLE groups (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  claim text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX groups_name ON groups (lower(name));
CREATE TABLE group_members (
  account_id uuid REFERENCES accounts ON DELETE CASCADE,
  group_id uuid REFERENCES groups ON DELETE CASCADE,
  PRIMARY KEY (account_id, group_id)
);
CREATE INDEX group_members_group ON group_members (group_id);
"""
SHARED = """
ALTER TABLE publications
  ADD admitted_ids uuid[] NOT NULL DEFAULT '{}',
  ADD editor_ids uuid[] NOT NULL DEFAULT '{}';
CREATE INDEX publications_admitted ON publications USING gin (admitted_ids);
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0041_languages")]

    operations = [ops.RunSQL(TABLES), ops.RunSQL(SHARED)]
