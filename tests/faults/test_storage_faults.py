"""Storage that answers wrongly, now and then or for a while, to everyone who asks it.

An intact source ends up ready once the fault has passed, and no fault of storage costs an attempt.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from api_kit import Client, metadata, presign
from passes_kit import make_playable
from portal_kit import make_video
from storage_fault_kit import BRISK, StorageProxy, seeds, send, storage_proxy, weather

from portal.errors import Unavailable
from portal.models import Attempt, Outcome, Video, VideoStatus
from portal.resources import Resources

MAX_PASSES = 40


@pytest.fixture
async def proxy(services: dict[str, str]) -> AsyncIterator[StorageProxy]:
    async with storage_proxy(services["S3_ENDPOINT_URL"]) as proxy:
        yield proxy


@pytest.fixture
def environ(environ: dict[str, str], proxy: StorageProxy) -> dict[str, str]:
    return {**environ, "S3_ENDPOINT_URL": proxy.url, "S3_PUBLIC_ENDPOINT_URL": proxy.url}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Large enough to be read by many requests while it is encoded."""
    folder = tmp_path_factory.mktemp("media")
    return make_video(folder / "source.mp4", seconds=4, size="640x360").read_bytes()


async def created(client: Client, content: bytes) -> Video:
    upload = await presign(client)
    assert await send(upload["uploadUrl"], content) == 200
    response = await client.post("/api/videos", json=metadata(upload["key"]))
    assert response.status_code == 201, await response.get_data()
    return await Video.get(id=(await response.get_json())["id"])


async def passes_until_final(video: Video, resources: Resources, work_dir: Path) -> Video:
    """Work on a video as workers do, one pass after the other."""
    for _ in range(MAX_PASSES):
        with suppress(Unavailable):
            video = await make_playable(video, resources, work_dir)
            if video.status is not VideoStatus.PROCESSING:
                return video
    pytest.fail(f"not final after {MAX_PASSES} passes")


@pytest.mark.parametrize("seed", seeds(2, soak=100))
@pytest.mark.parametrize("kinds", ["GET videos", "PUT (hls|master)", ".*"])
async def test_no_fault_of_storage_costs_an_attempt(
    kinds: str,
    seed: int,
    client: Client,
    resources: Resources,
    proxy: StorageProxy,
    source: bytes,
    tmp_path: Path,
) -> None:
    rng = Random(seed)  # noqa: S311
    video = await created(client, source)
    proxy.choose = weather(rng, BRISK, share=rng.uniform(0.1, 0.5), kinds=kinds, limit=30)
    video = await passes_until_final(video, resources, tmp_path)
    outcomes = [(it.outcome, it.error_code) for it in await Attempt.filter(video_id=video.id)]
    assert video.status is VideoStatus.READY, (video.failure_code, outcomes, proxy.tally)
    assert Outcome.FAILED not in {outcome for outcome, _ in outcomes}, (outcomes, proxy.tally)
