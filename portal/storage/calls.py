"""A call to storage: what its errors mean, how long it may take, and not to call while it is away.

Translates botocore's errors: `ObjectMissing`, `MultipartMissing` and `PartsRefused` for the
expected codes, `StorageUnavailable` when storage cannot be reached, is overloaded or refuses the
portal; anything else propagates.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus

from aiohttp import ClientPayloadError
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError
from botocore.parsers import ResponseParserError

from portal.concurrency.circuit_breaker import Outage
from portal.errors import MultipartMissing, ObjectMissing, PartsRefused, StorageUnavailable

logger = logging.getLogger(__name__)

MISSING_CODES = frozenset({"404", "NoSuchKey", "NotFound"})
REFUSED_PARTS_CODES = frozenset({"InvalidPart", "InvalidPartOrder", "EntityTooSmall"})
# Of a request that is fine but for its signature; rclone says 400 when it was signed too early.
REFUSALS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
# Of overload, and of a line that is too slow, some servers say that they were the client's fault.
SLOW_CODES = frozenset({"RequestTimeout", "SlowDown"})
# Where someone waits.
CALL_TIMEOUT_S = 6.0
# Where nobody does: enough for a segment over a slow line. The client's own limits, with their
# retries, add up to a minute, but there is none on how long a server may take to read a body.
PATIENT_TIMEOUT_S = 180.0


class StorageCalls:
    """Surrounds calls. With `fail_fast`, those of a process that answers people."""

    def __init__(self, *, fail_fast: bool) -> None:
        self._outage = Outage(StorageUnavailable) if fail_fast else None

    @asynccontextmanager
    async def about(self, key: str, *, timeout_s: float | None = None) -> AsyncIterator[None]:
        """Around one call, which concerns this key, or keys that begin so."""
        if self._outage is None:
            with translated_errors(key):
                async with asyncio.timeout(timeout_s or PATIENT_TIMEOUT_S):
                    yield
            return
        async with self._outage.trying():
            with translated_errors(key), _noted(self._outage):
                async with asyncio.timeout(timeout_s or CALL_TIMEOUT_S):
                    yield


@contextmanager
def _noted(outage: Outage) -> Iterator[None]:
    try:
        yield
    except (HTTPClientError, ConnectionError, TimeoutError):
        outage.found_away()
        raise
    except ClientError:
        outage.found_back()
        raise
    outage.found_back()


@contextmanager
def translated_errors(key: str) -> Iterator[None]:
    """Raise botocore's errors as the portal's own; the key is what was asked about."""
    try:
        yield
    except ClientError as exc:
        code = code_of(exc)
        if code in MISSING_CODES:
            raise ObjectMissing(key) from exc
        if code == "NoSuchUpload":
            raise MultipartMissing(key) from exc
        if code in REFUSED_PARTS_CODES:
            raise PartsRefused(key) from exc
        status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        if status in REFUSALS and code not in SLOW_CODES:
            # Wrong credentials, or a clock that is wrong by more than signatures allow: no fault
            # of the object at hand, and the operator's to mend.
            logger.error("Storage refuses the portal: %s", exc, extra={"action": "storage_refuses"})
        is_slow = status == HTTPStatus.TOO_MANY_REQUESTS or code in SLOW_CODES
        if status in REFUSALS or is_slow or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise StorageUnavailable from exc
        raise
    except (HTTPClientError, TimeoutError, ClientPayloadError, ResponseParserError) as exc:
        # No answer, or not all of it.
        raise StorageUnavailable from exc
    except BotoCoreError as exc:
        # No credentials, unknown region: the operator's to mend, and to be read in the log.
        raise StorageUnavailable from exc


def code_of(exc: BaseException | None) -> str:
    """S3's code of an error; empty for one that is none of storage's answers."""
    return str(exc.response.get("Error", {}).get("Code")) if isinstance(exc, ClientError) else ""
