"""Translation of storage's errors into the portal's."""

import inspect

import aiohttp
import pytest
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError
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
    ],
)
def test_errors_are_distinguished(error: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught, translated_errors("hls/a"):
        raise error
    assert type(caught.value) is expected
    if isinstance(caught.value, StorageDenied):
        assert caught.value.code == StorageUnavailable.code, "clients see an outage"


# botocore's classes of transient errors. All others are faults of the request.
TRANSIENT = {
    "HTTPClientError",
    "ConnectionError",
    "EndpointConnectionError",
    "SSLError",
    "ConnectionClosedError",
    "ReadTimeoutError",
    "ConnectTimeoutError",
    "ProxyConnectionError",
    "ResponseStreamingError",
    "ChecksumError",
    "FlexibleChecksumError",
    "IncompleteReadError",
    "CapacityNotAvailableError",
    "MetadataRetrievalError",
}
DENIED = {
    "NoCredentialsError",
    "NoAuthTokenError",
    "TokenRetrievalError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "SSOError",
    "SSOTokenLoadError",
    "UnauthorizedSSOTokenError",
}


def test_only_errors_without_an_answer_are_outages() -> None:
    classes = [
        error
        for _, error in inspect.getmembers(exceptions, inspect.isclass)
        if issubclass(error, BotoCoreError)
    ]
    assert len(classes) > 80
    for error_class in classes:
        error = error_class.__new__(error_class)  # constructors differ
        Exception.__init__(error, "broken")
        with pytest.raises(Exception) as caught, translated_errors("hls/a"):  # noqa: PT011
            raise error
        name = error_class.__name__
        expected: type[Exception] = StorageRefused
        if name in DENIED:
            expected = StorageDenied
        elif name in TRANSIENT:
            expected = StorageUnavailable
        assert type(caught.value) is expected, name


@pytest.mark.parametrize(
    "error",
    [aiohttp.ClientPayloadError(), aiohttp.ServerDisconnectedError(), ResponseParserError()],
)
def test_broken_responses_are_outages(error: Exception) -> None:
    with pytest.raises(StorageUnavailable), translated_errors("hls/a"):
        raise error
