"""The role contributor, whose videos wait for the approval of an editor."""

from tortoise import migrations
from tortoise.migrations import operations as ops

# A series needs no approval. It has the column because one condition reads the audiences of videos
# and series (`permissions.listed_for`).
APPROVAL = """
ALTER TABLE accounts ALTER role TYPE varchar(20);
ALTER TABLE one_time_links ALTER role TYPE varchar(20);
ALTER TABLE publications
  ADD approval varchar(10) CHECK (approval IN ('waiting', 'refused')),
  ADD approval_reason text NOT NULL DEFAULT '';
ALTER TABLE series ADD approval varchar(10) CHECK (approval IS NULL);
CREATE INDEX publications_waiting ON publications (created_at, id) WHERE approval = 'waiting';
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0047_named_viewers")]

    operations = [ops.RunSQL(APPROVAL)]
