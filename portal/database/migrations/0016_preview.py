"""How long segments are that were made of a rendition: it can be watched while it grows."""

from tortoise import migrations
from tortoise.migrations import operations as ops

ADD = "ALTER TABLE made_segments ADD duration_s double precision NOT NULL DEFAULT 0"


class Migration(migrations.Migration):
    dependencies = [("portal", "0015_imports")]

    operations = [ops.RunSQL(ADD)]
