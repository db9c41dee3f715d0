"""The database's schema: migrations, then the SQL functions in `functions/`.

A migration contains no function: every migration run creates or replaces all functions from their
files, together with the triggers that are missing. To change a trigger, change its file and drop
the trigger in a migration.
"""

from pathlib import Path

from psycopg import AsyncConnection, AsyncRawCursor
from tortoise import Tortoise
from tortoise.connection import get_connection
from tortoise.migrations.executor import MigrationExecutor
from tortoise.transactions import in_transaction

from portal.config import Config
from portal.database.connection import CONNECT_TIMEOUT_S, STATEMENT_TIMEOUT_MS, tortoise_config
from portal.errors import PortalError

# Any number that no other user of the database picks: it keeps two migrations apart.
MIGRATION_LOCK_ID = 7_306_815_001
# The last migration of version 0.5.0, which is the oldest one that can be upgraded.
BASELINE = "0019_transcriptions"
FUNCTIONS = Path(__file__).with_name("functions")


async def migrate(config: Config) -> None:
    """Bring the database to the newest version, in one transaction.

    It is safe to run this from several machines at once. Raise `PortalError` if the database is
    older than version 0.5.0.
    """
    async with await AsyncConnection.connect(
        config.database_url, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True
    ) as guard:
        await guard.execute("SELECT pg_advisory_lock(%s)", (MIGRATION_LOCK_ID,))
        settings = tortoise_config(config)
        credentials = settings["connections"]["default"]["credentials"]
        # A migration of a large library may take longer than any request. Only its waits for locks
        # are limited, because everything else waits behind them.
        credentials["check"] = None
        limits = f" -c statement_timeout=0 -c lock_timeout={STATEMENT_TIMEOUT_MS}"
        credentials["kwargs"]["options"] += limits
        # Tortoise's migration recorder writes asyncpg's placeholders ($1) whatever the backend;
        # psycopg understands them with its raw cursors.
        credentials["kwargs"]["cursor_factory"] = AsyncRawCursor
        await Tortoise.init(settings)
        try:
            await _run_migrations(settings["apps"])
        finally:
            await Tortoise.close_connections()


async def _run_migrations(apps: dict[str, dict[str, object]]) -> None:
    # Without targets the executor only creates its table of applied migrations. It can't create
    # the table in the transaction, which its first look at the missing table would abort.
    await MigrationExecutor(get_connection("default"), apps).migrate([])
    async with in_transaction() as connection:
        executor = MigrationExecutor(connection, apps)
        applied = {key.name for key in await executor.recorder.applied_migrations()}
        if applied and BASELINE not in applied:
            raise PortalError(
                "This database was made by a version before 0.5.0. Upgrade to 0.5.x first: install "
                "it, run `portal migrate`, and then upgrade to this version."
            )
        await executor.migrate()
        for file in sorted(FUNCTIONS.glob("*.sql")):
            await connection.execute_script(file.read_text())
