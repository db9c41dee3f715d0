"""The number of jobs that each requester has queued a short time ago, and requesters of files."""

from tortoise import migrations
from tortoise.migrations import operations as ops

# The janitor empties the table within hours, so it needs no other index.
TABLE = """
CREATE TABLE recent_requests (
  requester text PRIMARY KEY,
  forgotten_at timestamptz NOT NULL
)
"""
REQUESTERS = "ALTER TABLE downloads ADD requester text NOT NULL DEFAULT ''"


class Migration(migrations.Migration):
    dependencies = [("portal", "0038_described_times")]

    operations = [ops.RunSQL(TABLE), ops.RunSQL(REQUESTERS)]
