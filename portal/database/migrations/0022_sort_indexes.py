"""Orders of a long table by state and by visibility."""

from tortoise import migrations
from tortoise.migrations import operations as ops

INDEXES = (
    # Found by state alone, too.
    "CREATE INDEX videos_state_idx ON videos (status, id)",
    "DROP INDEX videos_status_idx",
    "CREATE INDEX videos_visibility_idx ON videos (visibility, id)",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0021_undo_and_names")]

    operations = [*map(ops.RunSQL, INDEXES)]
