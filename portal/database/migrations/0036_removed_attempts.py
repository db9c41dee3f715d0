"""The last attempt of a video whose version was removed, whose number is not used again."""

from tortoise import migrations
from tortoise.migrations import operations as ops

COLUMN = "ALTER TABLE publications ADD last_removed_attempt bigint NOT NULL DEFAULT 0"


class Migration(migrations.Migration):
    dependencies = [("portal", "0035_former_captions")]

    operations = [ops.RunSQL(COLUMN)]
