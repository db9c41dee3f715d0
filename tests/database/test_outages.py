"""Errors of the database that are outages."""

import inspect
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from portal.config import Config
from portal.database.connection import execute, open_database, retry_outage
from portal.database.outages import is_outage, skipped_in_outage
from portal.errors import DatabaseUnavailable, StorageUnavailable, VideoNotFound

OUTAGES = {
    "ConnectionException",
    "ConnectionDoesNotExist",
    "ConnectionFailure",
    "ProtocolViolation",
    "SqlclientUnableToEstablishSqlconnection",
    "TransactionResolutionUnknown",
    "SqlserverRejectedEstablishmentOfSqlconnection",
    "InsufficientResources",
    "DiskFull",
    "OutOfMemory",
    "TooManyConnections",
    "ConfigurationLimitExceeded",
    "AdminShutdown",
    "CrashShutdown",
    "CannotConnectNow",
    "DatabaseDropped",
    "IdleSessionTimeout",
    # No outages, but the loser of a deadlock succeeds when it is repeated.
    "SerializationFailure",
    "DeadlockDetected",
    # A failover has demoted the server.
    "ReadOnlySqlTransaction",
}


def test_outages_among_all_states_of_the_server() -> None:
    classes = {
        error.sqlstate: error
        for _, error in inspect.getmembers(errors, inspect.isclass)
        if issubclass(error, psycopg.Error) and error.sqlstate
    }
    assert len(classes) > 200
    assert {error.__name__ for error in classes.values() if is_outage(error())} == OUTAGES


async def test_refused_or_ended_connection_is_an_outage(config: Config) -> None:
    with pytest.raises(psycopg.OperationalError) as refused:
        await psycopg.AsyncConnection.connect("postgresql://127.0.0.1:1/portal")
    connection = await psycopg.AsyncConnection.connect(config.database_url)
    with pytest.raises(psycopg.OperationalError) as ended:
        await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(psycopg.OperationalError) as closed:
        await connection.execute("SELECT 1")
    single = AsyncConnectionPool(config.database_url, min_size=1, max_size=1, open=False)
    async with single as pool, pool.connection():
        with pytest.raises(PoolTimeout) as busy:
            await pool.getconn(timeout=0.01)
    assert all(is_outage(caught.value) for caught in (refused, ended, closed, busy))


async def test_refused_statement_is_not_repeated(config: Config) -> None:
    tries = 0

    async def save() -> None:
        nonlocal tries
        tries += 1
        words = " ".join(str(uuid4()) for _ in range(40_000))
        await execute("SELECT to_tsvector('simple', %s)", words)

    async with open_database(config):
        with pytest.raises(errors.ProgramLimitExceeded) as caught:
            await retry_outage(save)
    assert (tries, is_outage(caught.value)) == (1, False)


def test_unavailable_parts_are_outages_and_other_errors_are_not() -> None:
    assert is_outage(DatabaseUnavailable())
    assert is_outage(StorageUnavailable())
    assert not any(map(is_outage, (VideoNotFound(), ValueError(), TimeoutError(), None)))
    with skipped_in_outage():
        raise StorageUnavailable
    with pytest.raises(ValueError, match="text"), skipped_in_outage():
        raise ValueError("text")
