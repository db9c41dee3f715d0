"""Storage that returns errors to web, workers and clients, occasionally or for a while.

An intact source becomes ready once the fault has passed, and no fault of storage costs an attempt.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from api_client import Client, answered, metadata, uploaded
from bad_network import Network, network_to
from passes import make_playable
from running_portal import make_video, until
from storage_proxy import FAULTS, StorageProxy, storage_proxy, weather

from portal.database.models import Attempt, Outcome, Video, VideoStatus
from portal.errors import Unavailable
from portal.films import attempts, sources
from portal.http.composition import WebContext
from portal.transcoding.errors import TranscodeFailed


@pytest.fixture
async def proxy(services: dict[str, str]) -> AsyncIterator[StorageProxy]:
    async with storage_proxy(services["S3_ENDPOINT_URL"]) as proxy:
        yield proxy


@pytest.fixture
async def network(proxy: StorageProxy) -> AsyncIterator[Network]:
    async with network_to(proxy.url) as network:
        yield network


@pytest.fixture
def environ(environ: dict[str, str], network: Network) -> dict[str, str]:
    return {**environ, "S3_ENDPOINT_URL": network.url, "S3_PUBLIC_ENDPOINT_URL": network.url}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Large enough to be read by many requests while it is encoded."""
    folder = tmp_path_factory.mktemp("media")
    return make_video(folder / "source.mp4", seconds=4, size="640x360", copyable=False).read_bytes()


@pytest.fixture
async def video(client: Client, source: bytes) -> Video:
    response = await client.post("/api/videos", json=metadata(await uploaded(client, source)))
    return await Video.get(id=(await answered(response, 201))["id"])


async def test_no_fault_of_storage_costs_an_attempt(
    rng: Random,
    proxy: StorageProxy,
    network: Network,
    video: Video,
    resources: WebContext,
    tmp_path: Path,
) -> None:
    proxy.choose = weather(rng, "GET videos", share=rng.uniform(0.1, 0.5), limit=12)
    network.cut_at(rng.choices(range(5_000_000), k=5))

    async def is_final() -> bool:
        with suppress(Unavailable):
            await make_playable(video, resources, tmp_path)
        return not await Video.exists(id=video.id, status=VideoStatus.PROCESSING)

    await until(is_final, timeout_s=120)
    video = await Video.get(id=video.id)
    attempted = await Attempt.filter(video_id=video.id)
    outcomes = [(attempt.outcome, attempt.error_code) for attempt in attempted]
    assert video.status is VideoStatus.READY, (video.failure_code, outcomes, proxy.tally)
    assert Outcome.FAILED not in {outcome for outcome, _ in outcomes}, (outcomes, proxy.tally)


async def test_storage_that_never_delivers_the_source_is_not_asked_for_ever(
    proxy: StorageProxy,
    video: Video,
    resources: WebContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never_to_ffmpeg(kind: str, is_presigned: bool) -> str | None:
        return FAULTS[0] if is_presigned and kind == "GET videos" else None

    monkeypatch.setattr(sources, "MAX_INTERRUPTIONS", 2)
    proxy.choose = never_to_ffmpeg
    raised = [Unavailable] * 2 + [TranscodeFailed] * attempts.MAX_ATTEMPTS
    for expected in raised:
        with pytest.raises(expected):
            await make_playable(video, resources, tmp_path)
    video = await make_playable(video, resources, tmp_path)
    assert video.failure_code == attempts.TRANSCODE_FAILED
    failed = await Attempt.filter(outcome=Outcome.FAILED)
    codes = {attempt.error_code for attempt in failed}
    assert codes == {"source_unreachable"}
