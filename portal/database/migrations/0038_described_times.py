"""Times of the film in descriptions, which move with cuts while the text stays as it is."""

from tortoise import migrations
from tortoise.migrations import operations as ops

TIMES = "ALTER TABLE publications ADD described_times jsonb NOT NULL DEFAULT '{}'"
FORMER = "ALTER TABLE former_chapters ADD described_times jsonb NOT NULL DEFAULT '{}'"


class Migration(migrations.Migration):
    dependencies = [("portal", "0037_makers_of_links")]

    operations = [*map(ops.RunSQL, (TIMES, FORMER))]
