"""Time limits of calls to storage, and translation of botocore's errors.

`ObjectMissing`, `MultipartMissing`, `PartsRefused` and `RangeRefused` stand for expected codes,
`StorageDenied` for missing or refused credentials, `StorageUnavailable` for a server that is
unreachable or overloaded, and `StorageRefused` for other errors, after which repeating the request
would not help.
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
    """Response of storage about a key, which is the argument. Clients never see it."""


class ObjectMissing(StorageCondition):
    """Storage has no object under this key."""


class StorageRefused(StorageCondition):
    """Storage refuses a request for an unexpected reason, given by the cause."""


class RangeRefused(StorageCondition):
    """The object has no bytes in the requested range."""


class MultipartMissing(StorageCondition):
    """Storage has no such multipart upload: it was completed, aborted or lost."""


class PartsRefused(StorageCondition):
    """Storage refuses to complete an upload with these parts."""


MISSING_CODES = frozenset({"404", "NoSuchKey", "NotFound"})
CONDITIONS: Mapping[str, type[StorageCondition]] = {
    **dict.fromkeys(MISSING_CODES, ObjectMissing),
    **dict.fromkeys(("InvalidPart", "InvalidPartOrder", "EntityTooSmall"), PartsRefused),
    "NoSuchUpload": MultipartMissing,
    "InvalidRange": RangeRefused,
}
# Statuses for a refused signature. rclone returns 400 for one from the future.
DENIED_STATUSES = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
# Codes for overload and slow connections, which some servers send with one of those statuses.
SLOW_CODES = frozenset({"RequestTimeout", "SlowDown"})
# Time limit of a call that a client waits for.
CALL_TIMEOUT_S = 6.0
# Time limit of other calls, enough for a segment over a slow connection. The S3 client's limits
# don't include the time in which a server reads a body.
BACKGROUND_CALL_TIMEOUT_S = 180.0


# Errors of a missing or incomplete response.
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
# Errors of credentials that are missing or can't be fetched.
WITHOUT_CREDENTIALS = (
    exceptions.CredentialRetrievalError,
    exceptions.NoAuthTokenError,
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.SSOError,
    exceptions.TokenRetrievalError,
)


class BucketCalls:
    """S3 calls for one bucket. `fail_fast` shortens their time limits, for the web."""

    def __init__(self, client: Any, bucket: str, *, fail_fast: bool) -> None:
        self.client = client
        self.bucket = bucket
        self._timeout_s = CALL_TIMEOUT_S if fail_fast else BACKGROUND_CALL_TIMEOUT_S

    async def call(
        self, operation: str, *, timeout_s: float | None = None, **parameters: Any
    ) -> Any:
        """Return the response to an operation, with botocore's names."""
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
    """Raise botocore's errors in the block as the portal's own, for the key of the call."""
    try:
        yield
    except ClientError as exc:
        code = exc.response.get("Error", {}).get("Code", "")
        if condition := CONDITIONS.get(code):
            raise condition(key) from exc
        status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        is_slow = status == HTTPStatus.TOO_MANY_REQUESTS or code in SLOW_CODES
        if status in DENIED_STATUSES and not is_slow:
            # The operator has to fix the credentials, or a clock that is off by more than
            # signatures allow.
            _log_denial(exc)
            raise StorageDenied from exc
        if is_slow or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise StorageUnavailable from exc
        raise StorageRefused(key) from exc
    except OUTAGES as exc:
        raise StorageUnavailable from exc
    except WITHOUT_CREDENTIALS as exc:
        _log_denial(exc)
        raise StorageDenied from exc
    except BotoCoreError as exc:
        # The request itself is invalid, for example its key.
        raise StorageRefused(key) from exc


def _log_denial(exc: Exception) -> None:
    logger.error("Storage denies access: %s", exc, extra={"action": "storage_denied"})
