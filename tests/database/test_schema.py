"""Migrations: the upgrade from 0.5.0 results in the schema of a new database."""

from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from procrastinate.schema import SchemaManager

from portal.config import Config
from portal.database import connection, schema
from portal.database.account_models import Account, OneTimeLink
from portal.database.connection import open_database
from portal.database.event_models import Event, Webhook
from portal.database.models import Caption, Rendition, Tombstone, Upload, Video
from portal.database.work_models import Import
from portal.errors import PortalError

QUEUE = Path(schema.__file__).parent / "migrations" / "queue.sql"
VERSION_0_5_0 = Path(__file__).with_name("0.5.0.sql")
# PostgreSQL 18 names NOT NULL constraints; columns tell whether they have one.
CATALOG = """
SELECT 'column', attrelid::regclass || '.' || attname, concat_ws(
  ' ', format_type(atttypid, atttypmod), attnotnull, attidentity, attstattarget,
  pg_get_expr(adbin, adrelid)
)
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')
  AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype NOT IN ('n', 't')
UNION ALL
SELECT 'function', oid::regprocedure::text, pg_get_functiondef(oid)
FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL
SELECT 'trigger', tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid)
FROM pg_trigger WHERE NOT tgisinternal
"""
OTHER_FUNCTION = """
CREATE OR REPLACE FUNCTION learn_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RETURN NULL;
END $$
"""
UPLOAD_ID = UUID(int=12)
VIDEO_ID = UUID(int=21)
DELETED_VIDEO_ID = UUID(int=20)


@pytest.fixture
def old_database(config: Config) -> Config:
    """The settings of a database that version 0.5.0 left."""
    with psycopg.connect(config.database_url, autocommit=True) as database:
        database.execute("DROP SCHEMA public CASCADE")
        database.execute("CREATE SCHEMA public")
        database.execute(QUEUE.read_text())
        database.execute(VERSION_0_5_0.read_text())
    return config


def test_queue_tables_are_those_of_the_installed_procrastinate() -> None:
    """If not, a release has changed its schema, and a further migration has to follow it."""
    assert QUEUE.read_text().endswith(SchemaManager.get_schema())


async def check_rows(config: Config) -> None:
    """Check that the upgrade has kept the rows of version 0.5.0."""
    async with open_database(config):
        account = await Account.get()
        video = await Video.get()
        webhook = await Webhook.get()
        created, hidden = await Event.filter(video_id=VIDEO_ID).order_by("number")
        of_deleted = await Event.filter(video_id=DELETED_VIDEO_ID).order_by("number")
        assert (account.name, video.id, video.owner_id) == ("Olga", VIDEO_ID, account.id)
        assert (await Rendition.get()).name == "180p"
        assert (await Caption.get()).text == "WEBVTT\n\n00:00.000 --> 00:01.000\nahoy"
        assert (await Upload.get(multipart_id="parts")).id == UPLOAD_ID
        assert (await Import.get()).upload_id == UPLOAD_ID
        assert (await Tombstone.get()).video_id == DELETED_VIDEO_ID
        assert [secret["secret"] for secret in webhook.old_secrets] == ["whsec_old"]
        assert created.data
        assert created.data["title"] == video.title
        assert (created.was, hidden.was) == (
            None,
            {"owner_id": str(account.id), "visibility": "public", "signed_in_only": False},
        )
        makers = await OneTimeLink.all().values_list("made_by_id", flat=True)
        assert makers == [account.id, account.id]
        # Events of a deleted video keep only who could see the video.
        assert {frozenset(event.data or ()) for event in of_deleted} == {frozenset(hidden.was)}


async def test_upgrade_keeps_rows_and_results_in_the_schema_of_a_new_database(
    old_database: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        # Migrations have no time limit.
        patch.setattr(connection, "USE_LIMIT_S", 0.01)
        patch.setattr(connection, "STATEMENT_TIMEOUT_MS", 1)
        await schema.migrate(old_database)
    await check_rows(old_database)
    with psycopg.connect(old_database.database_url, autocommit=True) as database:
        upgraded = set(database.execute(CATALOG))
        database.execute("DROP SCHEMA public CASCADE")
        database.execute("CREATE SCHEMA public")
        await schema.migrate(old_database)
        assert upgraded == set(database.execute(CATALOG))


async def test_functions_are_replaced_by_each_migration_run(config: Config) -> None:
    with psycopg.connect(config.database_url, autocommit=True) as database:
        before = set(database.execute(CATALOG))
        database.execute(OTHER_FUNCTION)
        assert before != set(database.execute(CATALOG))
        await schema.migrate(config)
        assert before == set(database.execute(CATALOG))


async def test_database_older_than_the_baseline_is_refused(old_database: Config) -> None:
    with psycopg.connect(old_database.database_url, autocommit=True) as database:
        database.execute("DELETE FROM tortoise_migrations WHERE name = %s", [schema.BASELINE])
        before = set(database.execute(CATALOG))
        with pytest.raises(PortalError, match=r"Upgrade to 0\.5\.x first"):
            await schema.migrate(old_database)
        assert before == set(database.execute(CATALOG))
