"""Around each call to storage: a time limit, and translation of botocore's errors.

`ObjectMissing`, `MultipartMissing` and `PartsRefused` stand for the expected codes, `StorageDenied`
for missing or refused credentials, `StorageUnavailable` for a server that can't be reached or is
overloaded, and `StorageRefused` for any other error: repeating the request would not help.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any

import aiohttp
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError
from botocore.parsers import ResponseParserError

from portal.errors import StorageDenied, StorageUnavailable

logger = logging.getLogger(__name__)


class StorageCondition(Exception):
    """What storage says of a key, its argument; never shown as it is."""


class ObjectMissing(StorageCondition):
    """Storage has no object under this key."""


class StorageRefused(StorageCondition):
    """Storage refuses a request for a reason that callers do not expect; the cause has it."""


class RangeRefused(StorageCondition):
    """An object has none of the bytes asked for."""


class MultipartMissing(StorageCondition):
    """Storage does not know this multipart upload: it was completed or aborted, or got lost."""


class PartsRefused(StorageCondition):
    """Storage does not make an object of these parts."""


MISSING_CODES = frozenset({"404", "NoSuchKey", "NotFound"})
CONDITIONS: Mapping[str, type[StorageCondition]] = {
    **dict.fromkeys(MISSING_CODES, ObjectMissing),
    **dict.fromkeys(("InvalidPart", "InvalidPartOrder", "EntityTooSmall"), PartsRefused),
    "NoSuchUpload": MultipartMissing,
    "InvalidRange": RangeRefused,
}
# Of a request that is fine but for its signature; rclone says 400 when it was signed too early.
DENIED_STATUSES = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
# Codes of overload, and of a line that is too slow, to which some servers give such a status.
SLOW_CODES = frozenset({"RequestTimeout", "SlowDown"})
# Of a call that someone waits for.
CALL_TIMEOUT_S = 6.0
# Of other calls: enough for a segment over a slow line. The client's own limits, with their
# retries, add up to a minute, but there is none on how long a server may take to read a body.
BACKGROUND_CALL_TIMEOUT_S = 180.0


# No answer, or only a part of one.
OUTAGES = (
    HTTPClientError,
    ConnectionError,
    exceptions.CapacityNotAvailableError,
    exceptions.ChecksumError,
    exceptions.FlexibleChecksumError,
    exceptions.IncompleteReadError,
    exceptions.MetadataRetrievalError,
    aiohttp.ClientConnectionError,
    aiohttp.ClientPayloadError,
    ResponseParserError,
    TimeoutError,
)
# Credentials that are not there, or can't be fetched.
WITHOUT_CREDENTIALS = (
    exceptions.CredentialRetrievalError,
    exceptions.NoAuthTokenError,
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.SSOError,
    exceptions.TokenRetrievalError,
)


class BucketCalls:
    """S3 calls for one bucket. With `fail_fast`, for the web, their time limits are short."""

    def __init__(self, client: Any, bucket: str, *, fail_fast: bool) -> None:
        self.client = client
        self.bucket = bucket
        self._timeout_s = CALL_TIMEOUT_S if fail_fast else BACKGROUND_CALL_TIMEOUT_S

    async def call(
        self, operation: str, *, timeout_s: float | None = None, **parameters: Any
    ) -> Any:
        """The answer to an operation, both as botocore names them."""
        key = parameters.get("Key") or parameters.get("Prefix") or self.bucket
        async with self.guarded(key, timeout_s=timeout_s):
            return await getattr(self.client, operation)(Bucket=self.bucket, **parameters)

    @asynccontextmanager
    async def guarded(self, key: str, *, timeout_s: float | None = None) -> AsyncIterator[None]:
        """Limit the time of one call for this key, or key prefix, and translate its errors."""
        with translated_errors(key):
            async with asyncio.timeout(timeout_s or self._timeout_s):
                yield


@contextmanager
def translated_errors(key: str) -> Iterator[None]:
    """Raise botocore's errors as the portal's own; the key is that of the call."""
    try:
        yield
    except ClientError as exc:
        code = code_of(exc)
        if condition := CONDITIONS.get(code):
            raise condition(key) from exc
        status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        is_slow = status == HTTPStatus.TOO_MANY_REQUESTS or code in SLOW_CODES
        if status in DENIED_STATUSES and not is_slow:
            # Wrong credentials, or a clock that is wrong by more than signatures allow: no fault
            # of the object at hand, and the operator's to mend.
            raise _denied(exc, code) from exc
        if is_slow or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise StorageUnavailable from exc
        raise StorageRefused(key) from exc
    except OUTAGES as exc:
        raise StorageUnavailable from exc
    except WITHOUT_CREDENTIALS as exc:
        raise _denied(exc, type(exc).__name__) from exc
    except BotoCoreError as exc:
        # The request itself is at fault, such as a key that S3 doesn't take.
        raise StorageRefused(key) from exc


def _denied(exc: Exception, code: str) -> StorageDenied:
    """Log what the operator has to mend, and return the error for clients."""
    logger.error("Storage denies access: %s", exc, extra={"action": "storage_denied"})
    return StorageDenied(code)


def code_of(exc: BaseException | None) -> str:
    """S3's code of an error; empty for one that is none of storage's answers."""
    return str(exc.response.get("Error", {}).get("Code")) if isinstance(exc, ClientError) else ""
