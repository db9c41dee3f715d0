"""The tests of moving once more, against another S3 server: copies are storage's own work."""

from collections.abc import AsyncIterator

import pytest
from seaweed import SeaweedServer
from stored_objects import s3_client
from test_moving import *  # noqa: F403  # the same behaviour, whatever the server

pytestmark = pytest.mark.soak


@pytest.fixture
async def environ(environ: dict[str, str], seaweed: SeaweedServer) -> AsyncIterator[dict[str, str]]:
    """Its one bucket, empty again afterwards: it has no room for many."""
    settings = {**environ, **seaweed.environ}
    yield settings
    async with s3_client(settings) as client:
        listed = await client.list_objects_v2(Bucket=settings["S3_BUCKET"])
        for entry in listed.get("Contents", ()):
            await client.delete_object(Bucket=settings["S3_BUCKET"], Key=entry["Key"])
