"""Tries of storing captions, and the size of what is stored."""

from tortoise import migrations
from tortoise.migrations import operations as ops

ADD = """
ALTER TABLE captions
  ADD size_bytes bigint NOT NULL DEFAULT 0,
  ADD tries integer NOT NULL DEFAULT 0,
  ADD error_code varchar(60)
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0020_event_audiences")]

    operations = [ops.RunSQL(ADD)]
