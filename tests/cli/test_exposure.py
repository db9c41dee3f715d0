"""`portal doctor` on storage that answers strangers."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web
from command_line import portal
from running_portal import LivePortal
from serving import serving

from portal.cli.checks import Concern, Parts, check_exposure
from portal.config import Config
from portal.queue.app import open_queue
from portal.storage.bucket import open_storage
from portal.storage.calls import ObjectMissing

LISTING = b'<?xml version="1.0"?><ListBucketResult><Key>hls/a</Key></ListBucketResult>'


class OpenStore:
    """Answers unsigned requests: for files, for the list of them, or for neither."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.files = self.lists = False
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path_qs)
        assert "X-Amz-Signature" not in request.query
        if "list-type" in request.query:
            return web.Response(body=LISTING, status=200 if self.lists else 403)
        if not self.files:
            return web.Response(status=403)
        async with open_storage(self.config) as storage:
            try:
                key = request.path.removeprefix("/").removeprefix(f"{self.config.s3_bucket}/")
                return web.Response(body=await storage.get(key))
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
    """What is found, in one line; empty for nothing."""
    async with open_storage(config) as storage:
        try:
            await check_exposure(Parts(config, storage, open_queue(config.database_url)))
        except Concern as exposed:
            return f"{exposed}: {exposed.fix}"
        finally:
            assert await storage.list_some("hls/doctor/") == []
    return ""


@pytest.mark.parametrize(("flag", "words"), [
    ("files", "storage answers unsigned requests for files: "),
    ("lists", "storage lists its files for unsigned requests: "),
])  # fmt: skip
async def test_storage_that_answers_strangers_is_noticed(
    config: Config, store: OpenStore, address: str, flag: str, words: str
) -> None:
    setattr(store, flag, True)
    found = await examine(replace(config, s3_public_endpoint_url=address))
    assert found.startswith(words)
    assert "Block Public Access" in found
    assert store.asked[0].startswith(f"/{config.s3_bucket}/hls/doctor/")


async def test_storage_that_refuses_or_is_away_is_no_exposure(
    config: Config, store: OpenStore, address: str
) -> None:
    assert await examine(replace(config, s3_public_endpoint_url=address)) == ""
    assert len(store.asked) == 2
    away = {"s3_public_endpoint_url": "http://127.0.0.1:9", "playback_base_url": address}
    assert await examine(replace(config, **away)) == ""


async def test_content_network_is_told_of_and_fails_nothing(
    live_portal: LivePortal, store: OpenStore, address: str
) -> None:
    store.files = True
    environ = {**live_portal.environ, "PLAYBACK_BASE_URL": address}
    ended = await portal(environ, "doctor")
    assert ended.code == 0, ended.out
    assert f"WARN  Files for signed addresses alone: {address} answers for every file" in ended.out
    assert "unset PLAYBACK_BASE_URL" in " ".join(ended.out.split())
    assert "FAIL" not in ended.out
    assert (await portal(environ, "doctor", "--deep")).out.count("hls/doctor") == 0
