"""Baseline: all tables of version 0.5.0, which is the oldest version that can be upgraded.

The migration has the name of the last one in 0.5.0, so a database of 0.5.0 counts it as applied.
`queue.sql` is the schema of procrastinate 3.10. A release of procrastinate that changes its schema
needs a further migration, with the statements that its release notes name.
"""

from pathlib import Path

from tortoise import migrations
from tortoise.migrations import operations as ops

FOLDER = Path(__file__).parent


class Migration(migrations.Migration):
    initial = True

    operations = [
        ops.RunSQL((FOLDER / "queue.sql").read_text()),
        ops.RunSQL((FOLDER / "baseline.sql").read_text()),
    ]
