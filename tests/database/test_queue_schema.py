"""The queue's tables are made by a migration of the portal's own, and are procrastinate's."""

from typing import Any

from api_client import rows, run_sql
from older_databases import empty_database
from procrastinate.schema import SchemaManager

# Everything of the queue that PostgreSQL's catalogs know.
CATALOG = """
SELECT 'column', table_name || '.' || column_name,
       concat_ws(' ', data_type, udt_name, is_nullable, column_default, identity_generation)
FROM information_schema.columns WHERE table_name LIKE 'procrastinate%%'
UNION ALL
SELECT 'index', indexname, indexdef FROM pg_indexes WHERE tablename LIKE 'procrastinate%%'
UNION ALL
SELECT 'constraint', conname, conrelid::regclass || ' ' || pg_get_constraintdef(oid)
FROM pg_constraint WHERE conrelid::regclass::text LIKE 'procrastinate%%'
UNION ALL
SELECT 'function', oid::regprocedure::text, pg_get_functiondef(oid)
FROM pg_proc WHERE proname LIKE 'procrastinate%%'
UNION ALL
SELECT 'trigger', tgname, pg_get_triggerdef(oid)
FROM pg_trigger WHERE NOT tgisinternal AND tgname LIKE 'procrastinate%%'
UNION ALL
SELECT 'enum', typname || '.' || enumlabel, enumsortorder::text
FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid
UNION ALL
SELECT 'type', typname || '.' || attname, format_type(atttypid, atttypmod) || attnum
FROM pg_type JOIN pg_attribute ON attrelid = typrelid
WHERE typtype = 'c' AND typname LIKE 'procrastinate%%' AND attnum > 0
ORDER BY 1, 2, 3
"""


async def catalog(database_url: str) -> list[tuple[Any, ...]]:
    return await rows(database_url, CATALOG)


async def test_queue_tables_are_those_of_the_installed_procrastinate(
    services: dict[str, str], environ: dict[str, str]
) -> None:
    migrated = await catalog(environ["DATABASE_URL"])
    assert len(migrated) > 100
    async with empty_database(services) as config:
        await run_sql(config.database_url, SchemaManager.get_schema())
        assert migrated == await catalog(config.database_url)
