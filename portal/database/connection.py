"""The connection to PostgreSQL: Tortoise's configuration, its life, transactions."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from tortoise import Tortoise
from tortoise.backends.psycopg.client import PsycopgClient, TransactionWrapper
from tortoise.connection import get_connection, get_connections
from tortoise.expressions import RawSQL

from portal.config import Config
from portal.database.models import Video
from portal.database.outages import is_outage
from portal.database.pool import Connection, ConnectionCheck
from portal.retry import Backoff, retry

Result = TypeVar("Result")
Row = dict[str, Any]

CONNECT_TIMEOUT_S = 5
# Of whatever waits for a database that is away.
BACKOFF = Backoff(first_s=0.5, cap_s=5.0)
RECONNECT_TIMEOUT_S = 1
# Hours of encoding are worth waiting for the database.
OUTAGE_TIMEOUT_S = 3600.0
# A statement that runs longer is a bug or an overloaded server; either way it must end.
STATEMENT_TIMEOUT_MS = 15_000
# Longest wait for a free connection of the pool. The web answers 503 after it.
POOL_TIMEOUT_S = 5.0
WEB_POOL_TIMEOUT_S = 3.0
# Longest statement or transaction, for when the server no longer enforces its own limit. No query
# of the web takes longer than some tens of milliseconds.
USE_LIMIT_S = 60.0
WEB_USE_LIMIT_S = 10.0
# Unused connections are closed after this time. When the server is restarted while many are idle,
# the pool pauses for a second or more for each dead one that a request meets after its second.
MAX_IDLE_S = 60.0
# Connections to a server that a failover has demoted are replaced within this time.
MAX_LIFETIME_S = 300.0
# The database's clock: the one that all machines of a portal share.
NOW = RawSQL("now()")
# Of videos, for what people and programs see: see `Video.present`.
IS_PRESENT = "deleted_at IS NULL"
# Of attempts: whether the worker that made one still renews its lease. Times are the database's.
IS_LIVE = "lease_expires_at > now()"
# One that a worker makes at this moment; one whose lease ran out is not under way.
IS_UNDER_WAY = f"outcome IS NULL AND {IS_LIVE}"
# Joins `video` with the columns of that attempt.
JOIN_ATTEMPT = f"""
LEFT JOIN LATERAL (
  SELECT * FROM attempts WHERE video_id = video.id AND {IS_UNDER_WAY} ORDER BY number DESC LIMIT 1
) attempt ON true
"""  # noqa: S608 - put together from constants
# What ids in order are read from.
FIRST_ID = str(UUID(int=0))


@asynccontextmanager
async def open_database(config: Config, *, fail_fast: bool = False) -> AsyncIterator[None]:
    """Bind the models to the database. Connections are made on first use.

    With `fail_fast`, for the web, the time limits are short.

    The binding is global to the process, because a server answers requests in other tasks
    than the one that started it.
    """
    context = await Tortoise.init(
        tortoise_config(config, fail_fast=fail_fast), _enable_global_fallback=True
    )
    try:
        yield
    finally:
        await context.close_connections()


class TransactionClient(TransactionWrapper):
    """Tortoise's client for the statements of one transaction."""

    def __init__(self, client: PsycopgClient, connection: Connection) -> None:
        super().__init__(client)
        self.connection = connection

    def acquire_connection(  # type: ignore[override]  # Tortoise only enters and exits the result
        self,
    ) -> AbstractAsyncContextManager[Connection]:
        """Return the transaction's connection, which serializes concurrent statements itself."""
        return nullcontext(self.connection)


@asynccontextmanager
async def transaction() -> AsyncIterator[None]:
    """Run the block's queries and enqueued jobs in one transaction; in a savepoint if nested.

    Tortoise's own `in_transaction` loses a connection of the pool whenever a transaction is
    cancelled or fails while it begins.
    """
    client: Any = get_connection("default")
    if isinstance(client, TransactionClient):
        async with client.connection.transaction():
            yield
        return
    async with client.acquire_connection() as connection, connection.transaction():
        token = get_connections().set("default", TransactionClient(client, connection))
        try:
            yield
        finally:
            get_connections().reset(token)


def transaction_connection() -> Connection:
    """Return psycopg's connection of the current transaction.

    Jobs are enqueued on it, so that they are committed together with the rows.
    """
    client = get_connection("default")
    if not isinstance(client, TransactionClient):
        raise TypeError("No transaction is open. Enqueue jobs inside of `transaction()`.")
    return client.connection


async def fetch_rows(query: str, *values: object) -> list[Row]:
    """The rows of a query by hand; in a transaction, if one is open."""
    return await get_connection("default").execute_query_dict(query, list(values))


def sql_with(text: str, **values: object) -> sql.Composable:
    """A text with values in it: as literals, unless they are SQL."""
    parts = {
        name: it if isinstance(it, sql.Composable) else sql.Literal(it)
        for name, it in values.items()
    }
    return sql.SQL(text).format(**parts)


async def run_query(query: sql.Composable) -> list[Row]:
    """The rows of a query whose values are written into it."""
    # Without values: what is searched may hold a percent sign.
    return await get_connection("default").execute_query_dict(query.as_string(None))


async def execute(statement: str, *values: object) -> int:
    """Execute a statement by hand; returns how many rows it changed."""
    changed, _ = await get_connection("default").execute_query(statement, list(values))
    return int(changed)


async def server_time() -> datetime:
    """The database's clock; the one that all machines of a portal share."""
    [row] = await fetch_rows("SELECT now()")
    now: datetime = row["now"]
    return now


async def lock_video(video_id: UUID) -> Video | None:
    """The video, deleted or not, locked until the end of the current transaction."""
    return await Video.filter(id=video_id).select_for_update().get_or_none()


async def lock_present(video_id: UUID) -> Video | None:
    """As `lock_video`; None for a deleted one."""
    return await Video.present().filter(id=video_id).select_for_update().get_or_none()


async def rows_by_key(
    query: str, *values: object, first: str = FIRST_ID, page: int
) -> AsyncIterator[Row]:
    """The rows of a query, a page at a time, by their ascending column `key`.

    It takes the values, the key after which to go on, and a limit.
    """
    last, is_more = first, True
    while is_more:
        rows = await fetch_rows(query, *values, last, page)
        for row in rows:
            yield row
        is_more = len(rows) == page
        last = rows[-1]["key"] if rows else last


async def retry_outage(
    work: Callable[[], Awaitable[Result]], *, timeout_s: float = OUTAGE_TIMEOUT_S
) -> Result:
    """Do `work`, and repeat it during an outage of the database, for `timeout_s` at most.

    Only for transactions that may be repeated: the answer to a commit may have been lost. An error
    that is no outage is raised at once.
    """
    return await retry(
        work,
        on=is_outage,
        backoff=BACKOFF,
        give_up_after_s=timeout_s,
        what="Database",
    )


async def connect_once(config: Config) -> None:
    """Connect without the pool, which hides why that fails. Raises psycopg's error."""
    async with await AsyncConnection.connect(
        config.database_url, connect_timeout=CONNECT_TIMEOUT_S
    ):
        pass


def tortoise_config(config: Config, *, fail_fast: bool = False) -> dict[str, Any]:
    """Tortoise's settings for the database of `config`, any libpq parameter included."""
    parameters = dict(conninfo_to_dict(config.database_url))
    options = parameters.pop("options", None) or ""
    credentials = {
        **{name: parameters.pop(name, None) for name in ("user", "password", "host")},
        "port": parameters.pop("port", None) or 5432,
        "database": parameters.pop("dbname", None),
        "application_name": parameters.pop("application_name", "portal"),
        "server_settings": {"connect_timeout": CONNECT_TIMEOUT_S, **parameters},
        # Passed to psycopg for each connection; the first two are what Tortoise relies on.
        "kwargs": {
            "autocommit": True,
            "row_factory": dict_row,
            "options": f"{options} -c statement_timeout={STATEMENT_TIMEOUT_MS}",
        },
        # The pool opens without a database, and connects on first use.
        "minsize": 0,
        "maxsize": config.database_pool_size,
        "max_idle": MAX_IDLE_S,
        "max_lifetime": MAX_LIFETIME_S,
        "timeout": WEB_POOL_TIMEOUT_S if fail_fast else POOL_TIMEOUT_S,
        "check": ConnectionCheck(WEB_USE_LIMIT_S if fail_fast else USE_LIMIT_S),
        # After this long a failing connection is dropped, and made anew for the next request;
        # with a longer limit the pool's growing pauses would outlast an outage by minutes.
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
