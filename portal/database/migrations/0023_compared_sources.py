"""Uploads whose file was compared with its video once nobody could replace it any more."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops

# What is older was changed by an operator, if at all: `portal doctor --deep` reports it.
OLDER = "UPDATE uploads SET is_compared = true WHERE created_at < now() - interval '8 days'"


class Migration(migrations.Migration):
    dependencies = [("portal", "0022_sort_indexes")]

    operations = [
        ops.AddField("Upload", "is_compared", fields.BooleanField(default=False, db_default=False)),
        ops.RunSQL(OLDER),
    ]
