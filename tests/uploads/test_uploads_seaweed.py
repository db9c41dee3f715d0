"""The tests of uploads in parts once more, against a server that keeps them over a restart."""

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from api_client import Client, metadata
from seaweed import SeaweedServer, seaweed_server
from test_uploads import *  # noqa: F403  # the same behaviour, whatever the server
from test_uploads_races import *  # noqa: F403
from upload_client import PART_BYTES, complete, content, look, put_to, send_part, sign, started

from portal.web.composition import WebContext

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
async def seaweed() -> AsyncIterator[SeaweedServer]:
    with TemporaryDirectory(prefix="portal-seaweed-") as folder:
        async with seaweed_server(Path(folder)) as server:
            yield server


@pytest.fixture
def environ(environ: dict[str, str], seaweed: SeaweedServer) -> dict[str, str]:
    """The settings of one test, with the other storage."""
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
    assert [part["partNumber"] for part in (await look(client, upload))["parts"]] == [2, 4]
    # Addresses signed before the crash are good after it.
    assert (await put_to(address, data[:PART_BYTES]))[0] == 200
    await send_part(client, upload, 3, data)
    await complete(client, upload)
    await seaweed.restart()
    arrived = await content(resources, upload["key"])
    assert hashlib.sha256(arrived).digest() == hashlib.sha256(data).digest()
    assert (await client.post("/api/videos", json=metadata(upload["key"]))).status_code == 201
