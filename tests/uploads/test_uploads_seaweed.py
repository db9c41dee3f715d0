"""The tests of uploads in parts once more, against a server that keeps them over a restart."""

import hashlib
import os

import pytest
from api_client import Client, metadata
from seaweed import SeaweedServer
from test_uploads import *  # noqa: F403  # the same behaviour, whatever the server
from test_uploads_races import *  # noqa: F403
from upload_client import (
    PART_BYTES,
    complete,
    content,
    part_numbers,
    put_to,
    send_part,
    sign,
    started,
)

from portal.web.composition import WebContext

pytestmark = pytest.mark.soak


@pytest.fixture
def environ(environ: dict[str, str], seaweed: SeaweedServer) -> dict[str, str]:
    return {**environ, **seaweed.environ}


async def test_upload_goes_on_after_a_crash_of_storage(
    client: Client, resources: WebContext, seaweed: SeaweedServer
) -> None:
    data = os.urandom(PART_BYTES) * 3 + b"end"
    upload = await started(client, len(data))
    for number in (4, 2):
        await send_part(client, upload, number, data)
    address = await sign(client, upload, 1)
    await seaweed.restart()
    assert await part_numbers(client, upload) == [2, 4]
    # Addresses signed before the crash are good after it.
    assert (await put_to(address, data[:PART_BYTES]))[0] == 200
    await send_part(client, upload, 3, data)
    await complete(client, upload)
    await seaweed.restart()
    arrived = await content(resources, upload["key"])
    assert hashlib.sha256(arrived).digest() == hashlib.sha256(data).digest()
    assert (await client.post("/api/videos", json=metadata(upload["key"]))).status_code == 201
