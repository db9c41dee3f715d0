"""The accounts that made one-time links, which end with the rights of these accounts."""

from tortoise import migrations
from tortoise.migrations import operations as ops

COLUMN = "ALTER TABLE one_time_links ADD made_by_id uuid REFERENCES accounts ON DELETE CASCADE"


class Migration(migrations.Migration):
    dependencies = [("portal", "0036_removed_attempts")]

    operations = [ops.RunSQL(COLUMN)]
