"""Versions that another one replaced; posters of people outlast the version of their time.

Until now a chosen poster was in the folder of the published attempt, under a name with its number.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

VERSIONS = """
ALTER TABLE versions ADD retired_at timestamptz;
CREATE INDEX versions_retired_idx ON versions (retired_at) WHERE retired_at IS NOT NULL;
"""
POSTERS = """
ALTER TABLE publications ADD poster_path varchar(60);
UPDATE publications SET poster_path = published_attempt || '/poster-' || poster_version || '.jpg'
FROM versions WHERE versions.id = version_id AND poster_version > 0;
"""
DELETIONS = """
ALTER TABLE deletions ALTER storage_key TYPE text[] USING ARRAY[storage_key];
ALTER TABLE deletions RENAME storage_key TO storage_keys;
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0031_downloads")]

    operations = [*map(ops.RunSQL, (VERSIONS, POSTERS, DELETIONS))]
