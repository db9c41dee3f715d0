"""The check of `portal doctor` for files that are readable without signature."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web
from command_line import portal
from running_portal import LivePortal
from serving import serving

from portal.cli.checks import Concern, Parts, check_exposure
from portal.config import Config
from portal.storage.bucket import open_storage
from portal.storage.calls import ObjectMissing

LISTING = b'<?xml version="1.0"?><ListBucketResult><Key>hls/a</Key></ListBucketResult>'


class OpenStore:
    """Server that answers unsigned requests for files in a folder, for their list, or for neither.

    The empty folder contains all files.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.folder = ""
        self.files = self.lists = False
        self.requests: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append(request.path_qs)
        assert "X-Amz-Signature" not in request.query
        if "list-type" in request.query:
            return web.Response(body=LISTING, status=200 if self.lists else 403)
        if not self.files:
            return web.Response(status=403)
        async with open_storage(self.config) as storage:
            try:
                key = request.path.removeprefix("/").removeprefix(f"{self.config.s3_bucket}/")
                if key.startswith(self.folder):
                    return web.Response(body=await storage.get(key))
                return web.Response(status=403)
            except ObjectMissing:
                return web.Response(status=404)


@pytest.fixture
def store(config: Config) -> OpenStore:
    return OpenStore(config)


@pytest.fixture
async def address(store: OpenStore) -> AsyncIterator[str]:
    async with serving(web.get("/{path:.*}", store.answer)) as address:
        yield address


async def examine(config: Config) -> str:
    """Return the concern with its fix; empty if there is none."""
    async with open_storage(config) as storage:
        try:
            await check_exposure(Parts(config, storage))
        except Concern as exposed:
            return f"{exposed}: {exposed.fix}"
        finally:
            for folder in ("hls/", "videos/"):
                assert await storage.list_some(f"{folder}doctor/") == []
    return ""


@pytest.mark.parametrize(("flag", "words"), [
    ("files", "storage answers unsigned requests for files: "),
    ("lists", "storage lists its files for unsigned requests: "),
])  # fmt: skip
async def test_storage_that_answers_unsigned_requests_is_reported(
    config: Config, store: OpenStore, address: str, flag: str, words: str
) -> None:
    setattr(store, flag, True)
    concern = await examine(replace(config, s3_public_endpoint_url=address))
    assert concern.startswith(words)
    assert "Block Public Access" in concern
    assert store.requests[0].startswith(f"/{config.s3_bucket}/hls/doctor/")


async def test_storage_that_refuses_or_is_unreachable_is_not_reported(
    config: Config, store: OpenStore, address: str
) -> None:
    assert await examine(replace(config, s3_public_endpoint_url=address)) == ""
    assert len(store.requests) == 2
    away = {"s3_public_endpoint_url": "http://127.0.0.1:9", "playback_base_url": address}
    assert await examine(replace(config, **away)) == ""


async def test_open_content_network_is_a_warning(
    live_portal: LivePortal, store: OpenStore, address: str
) -> None:
    store.files = True
    environ = {**live_portal.environ, "PLAYBACK_BASE_URL": address}
    ended = await portal(environ, "doctor")
    assert ended.code == 0, ended.out
    assert f"WARN  Files need signed URLs: {address} serves uploaded files" in ended.out
    assert "Let the CDN forward only requests for /hls/." in " ".join(ended.out.split())
    store.folder = "hls/"
    ended = await portal(environ, "doctor")
    assert f"WARN  Files need signed URLs: {address} serves the files of private" in ended.out
    assert "unset PLAYBACK_BASE_URL" in " ".join(ended.out.split())
    assert "FAIL" not in ended.out
    assert (await portal(environ, "doctor", "--deep")).out.count("hls/doctor") == 0
