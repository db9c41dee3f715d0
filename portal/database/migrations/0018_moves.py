"""Numbers of attempts may be large."""

from tortoise import migrations
from tortoise.migrations import operations as ops

WIDEN = (
    "ALTER TABLE videos ALTER published_attempt TYPE bigint, ALTER forgiven_attempts TYPE bigint",
    "ALTER TABLE attempts ALTER number TYPE bigint",
    "ALTER TABLE renditions ALTER attempt_number TYPE bigint",
    "ALTER TABLE made_segments ALTER folder TYPE bigint, ALTER made_by TYPE bigint",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0017_single_sign_on")]

    operations = [*map(ops.RunSQL, WIDEN)]
