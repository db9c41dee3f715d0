"""Videos whose files are moved since they have become private; numbers of attempts that nobody guesses."""

from tortoise import migrations
from tortoise.migrations import operations as ops

CREATE = """
CREATE TABLE moves (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  video_id uuid NOT NULL UNIQUE REFERENCES videos (id) ON DELETE CASCADE,
  attempt_number bigint,
  job_id bigint NOT NULL,
  lease_expires_at timestamptz NOT NULL
)
"""
WIDEN = (
    "ALTER TABLE videos ALTER published_attempt TYPE bigint, ALTER forgiven_attempts TYPE bigint",
    "ALTER TABLE attempts ALTER number TYPE bigint",
    "ALTER TABLE renditions ALTER attempt_number TYPE bigint",
    "ALTER TABLE made_segments ALTER folder TYPE bigint, ALTER made_by TYPE bigint",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0017_single_sign_on")]

    operations = [*map(ops.RunSQL, (CREATE, *WIDEN))]
