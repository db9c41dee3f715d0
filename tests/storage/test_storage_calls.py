"""Translation of storage's errors into the portal's."""

import aiohttp
import pytest
from botocore import exceptions
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.parsers import ResponseParserError

from portal.errors import StorageDenied, StorageUnavailable
from portal.storage.calls import ObjectMissing, StorageRefused, translated_errors


def answered(status: int, code: str) -> ClientError:
    response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "GetObject")  # type: ignore[arg-type]  # the used part of it


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        # Refused credentials and a wrong clock differ from outages and overload.
        (answered(403, "AccessDenied"), StorageDenied),
        (answered(400, "ExpiredToken"), StorageDenied),
        (answered(403, "RequestTimeTooSkewed"), StorageDenied),
        (answered(400, "RequestTimeout"), StorageUnavailable),
        (answered(429, "TooManyRequests"), StorageUnavailable),
        (answered(500, "InternalError"), StorageUnavailable),
        (answered(404, "NoSuchKey"), ObjectMissing),
        (answered(404, "NoSuchBucket"), StorageRefused),
        (EndpointConnectionError(endpoint_url="http://s3"), StorageUnavailable),
        (TimeoutError(), StorageUnavailable),
        # Responses that are missing or broken.
        (exceptions.ReadTimeoutError(endpoint_url="http://s3"), StorageUnavailable),
        (exceptions.IncompleteReadError(actual_bytes=1, expected_bytes=2), StorageUnavailable),
        (exceptions.ConnectionClosedError(endpoint_url="http://s3"), StorageUnavailable),
        (exceptions.MetadataRetrievalError(error_msg="away"), StorageUnavailable),
        (ResponseParserError(), StorageUnavailable),
        (aiohttp.ClientPayloadError(), StorageUnavailable),
        (aiohttp.ServerDisconnectedError(), StorageUnavailable),
        # Credentials that are missing or can't be fetched, and a fault of the request.
        (exceptions.NoCredentialsError(), StorageDenied),
        (exceptions.CredentialRetrievalError(provider="x", error_msg="no"), StorageDenied),
        (exceptions.UnauthorizedSSOTokenError(), StorageDenied),
        (exceptions.ParamValidationError(report="no"), StorageRefused),
    ],
)
def test_errors_are_distinguished(error: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught, translated_errors("hls/a"):
        raise error
    assert type(caught.value) is expected
    if isinstance(caught.value, StorageDenied):
        assert caught.value.code == StorageUnavailable.code, "clients see an outage"
