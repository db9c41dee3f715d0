"""What a signed address is not good for, on both S3 servers; and what /hls does not give away."""

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import aiohttp
import pytest
from api_client import Client, counts, faults, metadata, presign, problem
from running_portal import until
from seaweed import SeaweedServer
from storage_proxy import send, soaked
from upload_client import (
    PART_BYTES,
    complete,
    content,
    multipart_id,
    send_part,
    started,
)
from yarl import URL

from portal.config import Config
from portal.storage.calls import ObjectMissing
from portal.web.app import create_app
from portal.web.composition import WebContext

OWN, SECRET = b"the attacker's own file", b"somebody else's file"
REFUSALS = range(400, 500)
# The embedded server says that the clocks differ too much.
EXPIRED = (400, 403)


@pytest.fixture(params=["embedded", soaked("seaweed")])
def environ(request: pytest.FixtureRequest, environ: dict[str, str]) -> dict[str, str]:
    """Settings for each of the servers; the other one is started only where it is asked for."""
    if request.param == "embedded":
        return environ
    seaweed: SeaweedServer = request.getfixturevalue("seaweed")
    return {**environ, **seaweed.environ}


@dataclass(frozen=True)
class Attack:
    """A request made of a signed address. `{victim}` stands for another upload's path."""

    method: str = "PUT"
    path: str = ""
    query: str = ""
    less: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


ATTACKS = {
    "read": Attack("GET"),
    "head": Attack("HEAD"),
    "delete": Attack("DELETE"),
    "post": Attack("POST"),
    "another key": Attack(path="{victim}"),
    "another key, encoded": Attack(path="{own}%2F..%2F..{victim}"),
    "another key, by dots": Attack(path="{own}/../../..{victim}"),
    "list the bucket": Attack("GET", path="/{bucket}"),
    "list by parameters": Attack("GET", path="/{bucket}", query="&list-type=2"),
    "list the buckets": Attack("GET", path="/"),
    "remove the bucket": Attack("DELETE", path="/{bucket}"),
    "a part of an upload": Attack(query="&partNumber=1&uploadId=x"),
    "begin an upload in parts": Attack("POST", query="&uploads="),
    "access rules": Attack(query="&acl="),
    "tags": Attack(query="&tagging="),
    "a longer life": Attack(query="&X-Amz-Expires=604800"),
    "no signature": Attack(less="X-Amz-Signature"),
    "no date": Attack(less="X-Amz-Date"),
    "less signed": Attack(less="X-Amz-SignedHeaders"),
    "another type": Attack(headers={"Content-Type": "text/html"}),
    "a copy of another": Attack(headers={"x-amz-copy-source": "{victim}"}),
    "public": Attack(headers={"x-amz-acl": "public-read"}),
    "metadata": Attack(headers={"x-amz-meta-a": "b"}),
    "a redirect": Attack(headers={"x-amz-website-redirect-location": "https://example.org/"}),
}


async def attack(it: Attack, address: str, victim: str) -> tuple[int, bytes]:
    parts = urlsplit(address)
    words = {"victim": urlsplit(victim).path, "own": parts.path, "bucket": parts.path.split("/")[1]}
    query = "&".join(each for each in parts.query.split("&") if it.less not in each or not it.less)
    path = it.path.format(**words) or parts.path
    headers = {name: value.format(**words) for name, value in it.headers.items()}
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            it.method,
            URL(f"{parts.scheme}://{parts.netloc}{path}?{query}{it.query}", encoded=True),
            headers={"Content-Type": "video/mp4", **headers},
            data=io.BytesIO(OWN) if it.method in ("PUT", "POST") else None,
        ) as answer,
    ):
        return answer.status, await answer.read()


async def test_address_of_a_put_is_good_for_nothing_else(
    client: Client, resources: WebContext
) -> None:
    upload, victim = await presign(client), await presign(client)
    assert await send(victim["uploadUrl"], SECRET) == 200
    for name, it in ATTACKS.items():
        status, body = await attack(it, upload["uploadUrl"], victim["uploadUrl"])
        assert status in REFUSALS, name
        assert SECRET not in body, name
        with pytest.raises(ObjectMissing):
            await resources.storage.head(upload["key"])
        assert await content(resources, victim["key"]) == SECRET, name


async def test_address_that_has_expired_is_refused_and_another_one_finishes_the_upload(
    client: Client, resources: WebContext
) -> None:
    storage, first = resources.storage, (await presign(client))["key"]
    address = await storage.public.presign_put(first, content_type="video/mp4", ttl_s=1)
    await until(lambda: _is_refused(address), timeout_s=20)
    upload = await started(client, PART_BYTES + 3)
    data = os.urandom(PART_BYTES + 3)
    await send_part(client, upload, 1, data)
    multipart = await multipart_id(resources, upload["key"]) or ""
    address = await storage.public.presign_part(upload["key"], multipart, 2, size_bytes=3, ttl_s=1)
    await until(lambda: _is_refused(address, data[PART_BYTES:]), timeout_s=20)
    await send_part(client, upload, 2, data)
    assert (await complete(client, upload))["state"] == "stored"


async def _is_refused(address: str, data: bytes = OWN) -> bool:
    return await send(address, data) in EXPIRED


async def test_file_over_the_limit_is_refused_and_removed(config: Config) -> None:
    app = create_app(replace(config, max_source_bytes=1000))
    async with app.test_app():
        client, storage = app.test_client(), app.extensions["portal"].storage
        upload = await presign(client)
        assert await send(upload["uploadUrl"], bytes(1001)) == 200
        body = metadata(upload["key"])
        found = await faults(await client.post("/api/videos", json=body))
        assert "1,001 bytes" in found["/key"]
        assert "1,000" in found["/key"]
        with pytest.raises(ObjectMissing):
            await storage.head(upload["key"])
        # Whatever is put there afterwards becomes no video.
        assert await send(upload["uploadUrl"], bytes(10)) == 200
        await problem(await client.post("/api/videos", json=body), 409, "upload_not_found")
        assert await counts(config.database_url) == (0, 0)
        largest = await presign(client)
        assert await send(largest["uploadUrl"], bytes(1000)) == 200
        created = await client.post("/api/videos", json=metadata(largest["key"]))
        assert created.status_code == 201
