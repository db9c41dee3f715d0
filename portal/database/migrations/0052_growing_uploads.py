"""Uploads whose size is unknown until their end."""

from tortoise import migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("portal", "0051_hand_ins")]

    operations = [
        ops.RunSQL("ALTER TABLE uploads ADD COLUMN is_growing boolean NOT NULL DEFAULT false")
    ]
