"""Public pages of private videos, and passwords of series."""

from tortoise import migrations
from tortoise.migrations import operations as ops

COLUMNS = """
ALTER TABLE publications ADD has_public_page boolean NOT NULL DEFAULT false;
ALTER TABLE series ADD password_hash text, ADD unlock_id uuid;
-- Whether a person added the video who may edit it.
ALTER TABLE series_videos ADD added_by_editor boolean NOT NULL DEFAULT false;
CREATE INDEX series_unlock ON series (unlock_id) WHERE unlock_id IS NOT NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0049_feeds")]

    operations = [ops.RunSQL(COLUMNS)]
