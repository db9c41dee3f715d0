"""Versions that are cut: their kept intervals, and the version whose segments they play.

Versions of the same file share its key in storage.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

VERSIONS = """
ALTER TABLE versions
  ADD keep jsonb,
  ADD base_id uuid REFERENCES versions DEFERRABLE INITIALLY DEFERRED,
  DROP CONSTRAINT versions_storage_key_key;
CREATE INDEX versions_storage_key_idx ON versions (storage_key);
CREATE INDEX versions_base_idx ON versions (base_id) WHERE base_id IS NOT NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0032_replacements")]

    operations = [ops.RunSQL(VERSIONS)]
