"""Language that the owner of an account chose for pages."""

from tortoise import migrations
from tortoise.migrations import operations as ops

ACCOUNTS = "ALTER TABLE accounts ADD language text NOT NULL DEFAULT ''"


class Migration(migrations.Migration):
    dependencies = [("portal", "0040_viewers_by_session")]

    operations = [ops.RunSQL(ACCOUNTS)]
