"""What storage's errors mean to the portal."""

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from portal.errors import StorageDenied, StorageUnavailable
from portal.storage.calls import ObjectMissing, StorageRefused, translated_errors


def answered(status: int, code: str) -> ClientError:
    told = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(told, "GetObject")  # type: ignore[arg-type]  # as much of it as is read


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        # Refused credentials, or a clock that is wrong, are told from an outage and an overload.
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
def test_errors_are_told_apart(error: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught, translated_errors("hls/a"):
        raise error
    assert type(caught.value) is expected
    if isinstance(caught.value, StorageDenied):
        assert caught.value.code == StorageUnavailable.code, "to clients it is one"
