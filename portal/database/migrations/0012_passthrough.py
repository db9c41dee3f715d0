"""Passthrough: an integrator's own text with a video, which its events tell, too."""

from tortoise import migrations
from tortoise.migrations import operations as ops

ADD = "ALTER TABLE videos ADD passthrough text NOT NULL DEFAULT ''"
# The function of 0011_events, with one member more in what it records.
RECORD = """
DO $$ BEGIN
  EXECUTE replace(
    pg_get_functiondef('complete_event'::regproc),
    '''tags'', tags,', '''tags'', tags, ''passthrough'', passthrough,'
  );
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0011_events")]

    operations = [ops.RunSQL(ADD), ops.RunSQL(RECORD)]
