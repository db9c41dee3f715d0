"""The job queue's tables and functions, as procrastinate 3.10 has them.

A release of procrastinate that changes its schema comes with a further migration here, with the
statements that its release notes name.
"""

from pathlib import Path

from tortoise import migrations
from tortoise.migrations import operations as ops

SCHEMA = Path(__file__).with_suffix(".sql").read_text()


class Migration(migrations.Migration):
    dependencies = [("portal", "0002_categories")]

    operations = [ops.RunSQL(SCHEMA)]
