"""Ids of uploads as a column, by which imports refer to them.

Until now an id was only a part of the storage key, `videos/<32 hexadecimal digits>.<extension>`.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

UPLOADS = (
    "ALTER TABLE uploads ADD id uuid",
    "UPDATE uploads SET id = substr(key, 8, 32)::uuid",
    "DROP INDEX uploads_id_idx",
    "ALTER TABLE videos DROP CONSTRAINT videos_storage_key_fkey",
    "ALTER TABLE imports DROP CONSTRAINT imports_storage_key_fkey",
    "ALTER TABLE uploads DROP CONSTRAINT uploads_pkey, ADD PRIMARY KEY (id), ADD UNIQUE (key)",
    "ALTER TABLE videos ADD FOREIGN KEY (storage_key) REFERENCES uploads (key) ON DELETE RESTRICT",
)
IMPORTS = (
    "ALTER TABLE imports ADD upload_id uuid UNIQUE REFERENCES uploads (id) ON DELETE CASCADE",
    "UPDATE imports SET upload_id = uploads.id FROM uploads WHERE uploads.key = storage_key",
    "ALTER TABLE imports ALTER upload_id SET NOT NULL, DROP storage_key",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0023_probe_answers")]

    operations = [*map(ops.RunSQL, (*UPLOADS, *IMPORTS))]
