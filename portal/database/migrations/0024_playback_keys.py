"""Playback links are signed by whatever key signs at present; keys go by their age alone."""

from tortoise import migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("portal", "0023_compared_sources")]

    operations = [
        ops.RunSQL("ALTER TABLE playback_links DROP COLUMN kid"),
        ops.RunSQL("ALTER TABLE signing_keys DROP COLUMN retired_at"),
    ]
