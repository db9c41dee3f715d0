"""The job queue's tables and functions, as procrastinate ships them.

An upgrade of procrastinate that changes its schema comes as a further migration here, which
runs the scripts that its release notes name.
"""

from procrastinate.schema import SchemaManager
from tortoise import migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("portal", "0002_categories")]

    operations = [ops.RunSQL(SchemaManager.get_schema())]
