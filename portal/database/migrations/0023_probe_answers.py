"""Recorded probes are discarded: their shape and the length of tracks differ from those of 0.5.0.

The next pass over a source probes it again.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

DISCARD = "UPDATE videos SET probe_answer = NULL WHERE probe_answer IS NOT NULL"


class Migration(migrations.Migration):
    dependencies = [("portal", "0022_secrets_and_imports")]

    operations = [ops.RunSQL(DISCARD)]
