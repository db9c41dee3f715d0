"""Captions that a machine is asked to write."""

from tortoise import migrations
from tortoise.migrations import operations as ops

CREATE = """
CREATE TABLE transcriptions (
  video_id uuid PRIMARY KEY REFERENCES videos (id) ON DELETE CASCADE,
  language varchar(60),
  job_id bigint NOT NULL,
  tries integer NOT NULL,
  text text NOT NULL,
  until_s double precision NOT NULL,
  active_at timestamptz,
  error_code varchar(60)
)
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0018_captions")]

    operations = [ops.RunSQL(CREATE)]
