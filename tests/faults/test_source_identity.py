"""Only the file that was stored when its video was created is transcoded.

A signed PUT stays valid after the creation. A replacement is noticed at any moment, however similar
it is to the first file, and files that were published before stay unchanged.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from api_client import Client, answered, metadata, presign, put
from passes import make_missing, make_playable, make_source, states
from seaweed import SeaweedServer, seaweed_server
from storage_proxy import StorageProxy, fine, storage_proxy

from portal.database.models import Video, VideoStatus
from portal.http.composition import WebContext
from portal.transcoding.planning import ladder


@pytest.fixture(scope="module")
async def seaweed() -> AsyncIterator[SeaweedServer]:
    with TemporaryDirectory(prefix="portal-seaweed-") as folder:
        async with seaweed_server(Path(folder)) as server:
            yield server


@pytest.fixture(params=["embedded"])
async def proxy(
    request: pytest.FixtureRequest, services: dict[str, str], seaweed: SeaweedServer
) -> AsyncIterator[StorageProxy]:
    """Proxy to the embedded server, which has no ETags, or to one that has them."""
    servers = {"embedded": services["S3_ENDPOINT_URL"], "seaweed": seaweed.endpoint_url}
    async with storage_proxy(servers[request.param]) as proxy:
        yield proxy


@pytest.fixture
def environ(environ: dict[str, str], seaweed: SeaweedServer, proxy: StorageProxy) -> dict[str, str]:
    other = seaweed.environ if proxy.target == seaweed.endpoint_url else {}
    address = {"S3_ENDPOINT_URL": proxy.url, "S3_PUBLIC_ENDPOINT_URL": proxy.url}
    return {**environ, **other, **address, "DOWNLOADS": "original"}


def other(content: bytes, rng: Random) -> bytes:
    """Return a playable file of the same size, with another date in its index."""
    at = content.index(b"mvhd") + 8
    return content[:at] + rng.randbytes(4) + content[at + 4 :]


async def created(client: Client, content: bytes) -> tuple[Video, str]:
    """Create a video, and return it with the address of its upload."""
    upload = await presign(client)
    assert await put(upload["uploadUrl"], content) == 200
    response = await client.post("/api/videos", json=metadata(upload["key"]))
    record = await answered(response, 201)
    return await Video.get(id=record["id"]), upload["uploadUrl"]


def replacing(
    proxy: StorageProxy, address: str, content: bytes, *, at_request: int, kind: str
) -> None:
    """Replace the file at the address at the given request of a kind."""
    count = 0

    async def replace(request_kind: str, is_presigned: bool) -> None:
        nonlocal count
        count += request_kind == kind
        if count == at_request:
            proxy.choose = fine
            assert await put(address, content) == 200

    proxy.choose = replace


@pytest.mark.parametrize("proxy", ["embedded", "seaweed"], indirect=True)
async def test_file_of_the_same_size_put_at_once_after_creation_is_noticed(
    rng: Random, client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    short = short_video.read_bytes()
    video, address = await created(client, short)
    assert await put(address, other(short, rng)) == 200
    video = await make_playable(video, resources, tmp_path)
    assert (video.status, video.failure_code) == (VideoStatus.FAILED, "source_changed")


async def test_file_replaced_in_the_middle_of_a_pass_is_not_published(
    rng: Random,
    client: Client,
    resources: WebContext,
    proxy: StorageProxy,
    short_video: Path,
    tmp_path: Path,
) -> None:
    short = short_video.read_bytes()
    video, address = await created(client, short)
    # Replaced during the probe's reads, or during the writes of the pass.
    kind, most = rng.choice([("GET videos", 6), ("PUT hls", 7)])
    replacing(proxy, address, other(short, rng), at_request=rng.randint(1, most), kind=kind)
    video = await make_playable(video, resources, tmp_path)
    assert (video.status, video.failure_code) == (VideoStatus.FAILED, "source_changed")
    assert (await client.get(f"/hls/{video.id}/master.m3u8")).status_code == 404


async def test_file_replaced_in_the_middle_of_a_later_pass_fails_only_what_is_missing(
    rng: Random,
    client: Client,
    resources: WebContext,
    proxy: StorageProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ladder, "_EARLY_FROM_ENCODE_S", 0)
    # Playable after one pass, completed by another.
    long = make_source(tmp_path / "long.mp4", size="640x360", rate=2).read_bytes()
    video, address = await created(client, long)
    video = await make_playable(video, resources, tmp_path)
    assert video.status is VideoStatus.READY
    before = await states(video)
    original = f"/videos/{video.id}/downloads/original"
    assert (await client.get(original)).status_code == 302
    # The pass writes 19 objects; a 20th request would come after its last check of the source.
    replacing(proxy, address, other(long, rng), at_request=rng.randint(1, 18), kind="PUT hls")
    assert await make_missing(video, resources, tmp_path)
    after = await states(video)
    assert {before[name] for name in before} == {"complete", "planned"}
    expected = {"complete": "complete", "planned": "failed"}
    assert after == {name: expected[state] for name, state in before.items()}
    assert (await Video.get(id=video.id)).status is VideoStatus.READY
    assert (await client.get(original)).status_code == 404
    assert (await client.get(f"/hls/{video.id}/master.m3u8")).status_code == 200
