"""The connection to PostgreSQL: Tortoise's configuration, transactions, and SQL written by hand."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row
from tortoise import Tortoise
from tortoise.connection import get_connection, get_connections
from tortoise.expressions import RawSQL

from portal.config import Config
from portal.database.models import Version, Video
from portal.database.outages import is_outage
from portal.database.pool import ConnectionCheck, TransactionClient
from portal.retry import Backoff, retry

Result = TypeVar("Result")
Row = dict[str, Any]

CONNECT_TIMEOUT_S = 5
# Pauses between tries while the database is unreachable.
BACKOFF = Backoff(first_s=0.5, cap_s=5.0)
RECONNECT_TIMEOUT_S = 1
# Parameters of libpq that end a connection 30 s after its server vanished silently, even if the
# connection only waits for notifications.
KEEPALIVES: Mapping[str, Any] = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
# Longest wait of a worker for the database: hours of encoding may depend on it.
OUTAGE_TIMEOUT_S = 3600.0
# Longest statement, enforced by the server. A longer one means a bug or an overloaded server.
STATEMENT_TIMEOUT_MS = 15_000
# Longest wait for a free connection of the pool. The web answers 503 after it.
POOL_TIMEOUT_S = 5.0
WEB_POOL_TIMEOUT_S = 3.0
# Longest statement or transaction, for when the server no longer enforces its own limit. No query
# of the web takes longer than some tens of milliseconds.
USE_LIMIT_S = 60.0
WEB_USE_LIMIT_S = 10.0
# Unused connections are closed after this time. After a restart of the server the pool pauses for
# seconds once a request has met two dead connections, so idle ones should be few.
MAX_IDLE_S = 60.0
# Connections to a server that a failover has demoted are replaced within this time.
MAX_LIFETIME_S = 300.0
# The database's clock, which all machines of a portal share.
NOW = RawSQL("now()")
# Condition on videos that people and programs may see, as in `Video.present`.
IS_PRESENT = "deleted_at IS NULL"
# Condition on attempts whose worker still renews the lease, by the database's clock.
IS_LIVE = "lease_expires_at > now()"
# Condition on attempts that a worker is making. Attempts with an expired lease don't count.
IS_UNDER_WAY = f"outcome IS NULL AND {IS_LIVE}"
# Join of `video` with the attempt under way at its current version.
JOIN_ATTEMPT = f"""
LEFT JOIN LATERAL (
  SELECT * FROM attempts
  WHERE attempts.version_id = video.version_id AND {IS_UNDER_WAY} ORDER BY number DESC LIMIT 1
) attempt ON true
"""  # noqa: S608 - put together from constants
LOCK_VIDEO = "SELECT FROM publications WHERE id = %s FOR UPDATE"
LOCK_VIDEO_OF = """
SELECT FROM publications WHERE id = (SELECT video_id FROM versions WHERE id = %s) FOR UPDATE
"""
# Lowest id, from which rows are read in the order of their ids.
FIRST_ID = str(UUID(int=0))


@asynccontextmanager
async def open_database(config: Config, *, fail_fast: bool = False) -> AsyncIterator[None]:
    """Bind the models to the database. Connections are opened on first use.

    `fail_fast` shortens the time limits, for the web. The binding is global to the process, because
    a server handles requests in other tasks than the one that started it.
    """
    context = await Tortoise.init(
        tortoise_config(config, fail_fast=fail_fast),
        _enable_global_fallback=True,  # argument of Tortoise's own web integrations
    )
    try:
        yield
    finally:
        await context.close_connections()


@asynccontextmanager
async def transaction() -> AsyncIterator[None]:
    """Run the block's queries and enqueued jobs in one transaction; in a savepoint if nested.

    The functions given to `before_commit` run after the outermost block.

    Tortoise's own `in_transaction` loses a connection of the pool whenever a transaction is
    cancelled or fails while it begins.
    """
    client: Any = get_connection("default")
    if isinstance(client, TransactionClient):
        work_count = len(client.last_work)
        try:
            async with client.connection.transaction():
                yield
        except BaseException:
            del client.last_work[work_count:]
            raise
        return
    async with client.acquire_connection() as connection, connection.transaction():
        inner = TransactionClient(client, connection)
        token = get_connections().set("default", inner)
        try:
            yield
            for work in inner.last_work:
                await work()
        finally:
            get_connections().reset(token)


async def fetch_rows(query: str, *values: object) -> list[Row]:
    """Return the rows of a query, run in the current transaction if one is open."""
    return await get_connection("default").execute_query_dict(query, list(values))


def sql_with(text: str, **values: object) -> sql.Composable:
    """Return SQL with values for its placeholders: SQL as it is, other values as literals."""
    parts = {
        name: value if isinstance(value, sql.Composable) else sql.Literal(value)
        for name, value in values.items()
    }
    return sql.SQL(text).format(**parts)


async def run_query(query: sql.Composable) -> list[Row]:
    """Return the rows of a query that contains its values."""
    # Without a list of values psycopg takes percent signs in search words literally.
    return await get_connection("default").execute_query_dict(query.as_string(None))


def rows_json(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as JSON for `jsonb_to_recordset` and `jsonb_populate_recordset`.

    Bytes are written in hexadecimal, as PostgreSQL reads them, and UUIDs and dates as text.
    """
    return json.dumps(list(rows), default=_json_value)


def _json_value(value: object) -> str:
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


async def execute(statement: str, *values: object) -> int:
    """Execute a statement. Return the number of rows that it changed."""
    row_count, _ = await get_connection("default").execute_query(statement, list(values))
    return int(row_count)


async def server_time() -> datetime:
    """Return the time of the database's clock, which all machines of a portal share."""
    [row] = await fetch_rows("SELECT now()")
    now: datetime = row["now"]
    return now


async def select_videos(clause: str, **values: object) -> list[Video]:
    """Return the videos that a SQL clause selects, with `values` for its placeholders.

    The ORM takes longer to build such a query than the database to run it.
    """
    query = sql_with(f"SELECT * FROM videos WHERE {clause}", **values)  # noqa: S608
    videos: list[Video] = await Video.raw(query.as_string(None))
    return videos


async def lock_video(video_id: UUID) -> Video | None:
    """Lock a video until the current transaction ends, and return it, even if it is deleted.

    The lock is that of the publication. Every change of a publication or of its versions takes it.
    """
    # A statement that waits for a lock reads the version from before the wait, so read afterwards.
    await fetch_rows(LOCK_VIDEO, video_id)
    videos = await select_videos("id = {id}", id=video_id)
    return videos[0] if videos else None


async def lock_version(version_id: UUID) -> Version | None:
    """Lock the video of a version as `lock_video` does, and return the version."""
    await fetch_rows(LOCK_VIDEO_OF, version_id)
    return await Version.get_or_none(id=version_id)


async def rows_by_key(
    query: str, *values: object, first: str = FIRST_ID, page: int
) -> AsyncIterator[Row]:
    """Yield the rows of a query in pages, in the ascending order of its column `key`.

    The query's parameters are the values, the key after which the page begins, and a limit.
    """
    while rows := await fetch_rows(query, *values, first, page):
        for row in rows:
            yield row
        first = rows[-1]["key"]


async def retry_outage(
    work: Callable[[], Awaitable[Result]], *, timeout_s: float = OUTAGE_TIMEOUT_S
) -> Result:
    """Call `work`, and repeat it during an outage of the database, for at most `timeout_s`.

    The transactions in it must be repeatable, since the response to a commit may have been lost.
    Other errors than outages are raised at once.
    """
    return await retry(
        work, on=is_outage, backoff=BACKOFF, give_up_after_s=timeout_s, part="Database"
    )


def with_keepalives(database_url: str) -> str:
    """Return libpq's `key=value` form of a URL, with each of `KEEPALIVES` that it doesn't set.

    Raises `psycopg.ProgrammingError` for a malformed URL.
    """
    return make_conninfo(**{**KEEPALIVES, **conninfo_to_dict(database_url)})


async def connect_once(config: Config) -> None:
    """Connect without the pool, to raise psycopg's error, which the pool would hide."""
    async with await AsyncConnection.connect(
        config.database_url, connect_timeout=CONNECT_TIMEOUT_S
    ):
        pass


def tortoise_config(config: Config, *, fail_fast: bool = False) -> dict[str, Any]:
    """Return Tortoise's settings for the configured database, with all libpq parameters."""
    parameters = dict(conninfo_to_dict(with_keepalives(config.database_url)))
    options = parameters.pop("options", None) or ""
    credentials = {
        **{name: parameters.pop(name, None) for name in ("user", "password", "host")},
        "port": parameters.pop("port", None) or 5432,
        "database": parameters.pop("dbname", None),
        "application_name": parameters.pop("application_name", "portal"),
        "server_settings": {"connect_timeout": CONNECT_TIMEOUT_S, **parameters},
        # Arguments of each psycopg connection. Tortoise relies on the first two.
        "kwargs": {
            "autocommit": True,
            "row_factory": dict_row,
            # The planner estimates a count without the limit at which it stops. The server would
            # compile such a short statement for longer than it runs.
            "options": f"{options} -c jit=off -c statement_timeout={STATEMENT_TIMEOUT_MS}",
        },
        # A pool without a minimum opens even if the database is unreachable.
        "minsize": 0,
        "maxsize": config.database_pool_size,
        "max_idle": MAX_IDLE_S,
        "max_lifetime": MAX_LIFETIME_S,
        "timeout": WEB_POOL_TIMEOUT_S if fail_fast else POOL_TIMEOUT_S,
        "check": ConnectionCheck(WEB_USE_LIMIT_S if fail_fast else USE_LIMIT_S),
        # The pool stops retrying a failed connection after this time, and tries again for the next
        # request. Otherwise its growing pauses would outlast an outage by minutes.
        "reconnect_timeout": RECONNECT_TIMEOUT_S,
    }
    return {
        "connections": {
            "default": {"engine": "tortoise.backends.psycopg", "credentials": credentials}
        },
        "apps": {
            "portal": {
                "models": [
                    "portal.database.models",
                    "portal.database.account_models",
                    "portal.database.event_models",
                    "portal.database.work_models",
                ],
                "migrations": "portal.database.migrations",
                "default_connection": "default",
            }
        },
    }
