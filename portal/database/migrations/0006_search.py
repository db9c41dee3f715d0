"""Full-text search of the library, and an index for each of its orders and filters.

Videos that are there already get their search documents here. Everything is written in one
transaction, so that no portal ever finds half a library.
"""

from typing import Any

from tortoise import fields, migrations
from tortoise.contrib.postgres.fields import TSVectorField
from tortoise.fields.db_defaults import SqlDefault
from tortoise.migrations import operations as ops

from portal.database.search import search_columns

BATCH_SIZE = 500
FIRST_ID = "00000000-0000-0000-0000-000000000000"
NEXT_BATCH = f"""
SELECT id, title, description, tags FROM videos WHERE id > $1 ORDER BY id LIMIT {BATCH_SIZE}
"""  # noqa: S608 - a constant of this file
WRITE = """
UPDATE videos SET search = written.search::tsvector, sort_title = written.sort_title
FROM unnest($1::uuid[], $2::text[], $3::text[]) AS written (id, search, sort_title)
WHERE videos.id = written.id
"""
# A large library takes its time; a migration is nobody's request.
NO_TIME_LIMIT = "SET LOCAL statement_timeout = 0"
# Without a pending list: a search never has to read through what was lately added.
INDEXES = (
    "CREATE INDEX videos_search_idx ON videos USING gin (search) WITH (fastupdate = off)",
    "CREATE INDEX videos_category_idx ON videos USING gin (category_ids) WITH (fastupdate = off)",
    "CREATE INDEX videos_status_idx ON videos (status)",
    "CREATE INDEX videos_title_idx ON videos (sort_title, id)",
    "CREATE INDEX videos_duration_idx ON videos ((coalesce(duration_s, -1)), id)",
    # So fine that the planner knows a rare word from a frequent one.
    "ALTER TABLE videos ALTER search SET STATISTICS 1000",
    "ANALYZE videos",
)


async def write_documents(_apps: object, editor: Any) -> None:
    """Give every video its search document."""
    last = FIRST_ID
    while rows := await editor.client.execute_query_dict(NEXT_BATCH, [last]):
        ids = [str(row.pop("id")) for row in rows]
        written = [search_columns(**row) for row in rows]
        values = [[each[name] for each in written] for name in ("search", "sort_title")]
        await editor.client.execute_query(WRITE, [ids, *values])
        last = ids[-1]


class Migration(migrations.Migration):
    dependencies = [("portal", "0005_multipart")]

    operations = [
        ops.RunSQL(NO_TIME_LIMIT),
        ops.AddField("Video", "search", TSVectorField(db_default=SqlDefault("''"))),
        ops.AddField("Video", "sort_title", fields.TextField(db_default=SqlDefault("''"))),
        ops.RunPython(write_documents),
        *(ops.RunSQL(statement) for statement in INDEXES),
    ]
