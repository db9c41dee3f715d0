"""Storage that answers wrongly, now and then or for a while, to everyone who asks it.

An intact source ends up ready once the fault has passed, and no fault of storage costs an attempt.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from aged_videos import hence, tidy
from api_client import Client, counts, metadata, presign, problem, uploaded
from passes import make_playable
from quart import Response
from running_portal import make_video, until
from storage_proxy import Asked, Fault, StorageProxy, fine, storage_proxy, weather
from stored_objects import stored
from upload_client import PART_BYTES, content, multipart_uploads, put_to, start

from portal.config import Config
from portal.database.models import Attempt, Deletion, Outcome, Video, VideoStatus
from portal.errors import Unavailable
from portal.maintenance.janitor import Tidied
from portal.processing import attempts, sources
from portal.processing.removal import Unsettled, remove_files
from portal.transcoding.errors import TranscodeFailed
from portal.web.composition import WebContext


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
    return make_video(folder / "source.mp4", seconds=4, size="640x360", copyable=False).read_bytes()


@dataclass(frozen=True)
class Transcoding:
    """A video, and passes over it as workers carry them out."""

    video: Video
    resources: WebContext
    work_dir: Path

    async def one_pass(self) -> Video:
        return await make_playable(self.video, self.resources, self.work_dir)

    async def until_final(self) -> Video:
        """One pass after the other."""
        found = self.video

        async def is_final() -> bool:
            nonlocal found
            with suppress(Unavailable):
                found = await self.one_pass()
            return found.status is not VideoStatus.PROCESSING

        await until(is_final, timeout_s=120)
        return found


@pytest.fixture
async def transcoding(
    client: Client, resources: WebContext, source: bytes, tmp_path: Path
) -> Transcoding:
    body = metadata(await uploaded(client, source))
    response = await client.post("/api/videos", json=body)
    video = await Video.get(id=(await response.get_json())["id"])
    return Transcoding(video, resources, tmp_path)


async def expect_unavailable(response: Response) -> None:
    await problem(response, 503, "storage_unavailable")
    assert 1 <= int(response.headers["Retry-After"]) <= 60


async def test_web_answers_503_and_changes_nothing(
    rng: Random, client: Client, config: Config, proxy: StorageProxy
) -> None:
    body = metadata(await uploaded(client))
    proxy.choose = weather(rng, faults=[Fault.SLOW_DOWN])
    await expect_unavailable(await client.post("/api/videos", json=body))
    assert await counts(config.database_url) == (0, 0)
    other = (await presign(client))["key"]
    await expect_unavailable(await start(client, other, PART_BYTES))
    proxy.choose = fine

    async def is_created() -> bool:
        return (await client.post("/api/videos", json=body)).status_code == 201

    await until(is_created, timeout_s=20)
    assert (await start(client, other, PART_BYTES)).status_code == 201


async def test_upload_in_parts_is_whole_after_any_faults(
    rng: Random, client: Client, resources: WebContext, proxy: StorageProxy
) -> None:
    proxy.choose = weather(rng, share=0.4, limit=25)
    proxy.lists_late = rng.random() < 0.5
    data = rng.randbytes(PART_BYTES + 1000)
    key = (await presign(client))["key"]

    async def insist(method: str, path: str, **more: Any) -> dict[str, Any]:
        """As clients do: repeat what storage was not there for."""
        for _ in range(40):
            response = await client.open(path, method=method, **more)
            if response.status_code != 503:
                break
            await asyncio.sleep(0.3)
        answer: dict[str, Any] = await response.get_json()
        return answer

    upload = await insist("POST", "/api/uploads", json={"key": key, "sizeBytes": len(data)})
    path = f"/api/uploads/{upload['uploadId']}"
    missing = [1, 2]
    for _ in range(60):
        for number in missing:
            part = data[(number - 1) * PART_BYTES : number * PART_BYTES]
            address = (await insist("POST", f"{path}/parts/{number}"))["uploadUrl"]
            with suppress(aiohttp.ClientError):
                await put_to(address, part)
        answer = await insist("POST", f"{path}/complete")
        if answer.get("state") == "stored":
            break
        assert answer["code"] == "parts_missing", answer
        missing = answer["missingParts"]
    proxy.choose = fine
    assert await content(resources, key) == data
    # What storage began and could not say so nobody knows; a sweep removes it.
    cuts = (Fault.LOST_ANSWER, Fault.CUT_ANSWER, Fault.CUT_REQUEST)
    lost = sum(proxy.tally[f"{fault}: POST multipart"] for fault in cuts)
    assert len(await multipart_uploads(resources, key)) <= lost


async def test_no_fault_of_storage_costs_an_attempt(
    rng: Random, proxy: StorageProxy, transcoding: Transcoding
) -> None:
    proxy.choose = weather(rng, share=rng.uniform(0.1, 0.5), kinds="GET videos", limit=12)
    video = await transcoding.until_final()
    outcomes = [(it.outcome, it.error_code) for it in await Attempt.filter(video_id=video.id)]
    assert video.status is VideoStatus.READY, (video.failure_code, outcomes, proxy.tally)
    assert Outcome.FAILED not in {outcome for outcome, _ in outcomes}, (outcomes, proxy.tally)


def never_to_ffmpeg(asked: Asked) -> Fault | None:
    is_presigned = "X-Amz-Signature" in asked.query
    return Fault.ERROR if is_presigned and asked.kind == "GET videos" else None


async def test_storage_that_never_delivers_the_source_is_not_asked_for_ever(
    proxy: StorageProxy, transcoding: Transcoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MAX_INTERRUPTIONS", 2)
    proxy.choose = never_to_ffmpeg
    for _ in range(2):
        with pytest.raises(Unavailable):
            await transcoding.one_pass()
    for _ in range(attempts.MAX_ATTEMPTS):
        with pytest.raises(TranscodeFailed, match="source_unreachable"):
            await transcoding.one_pass()
    with pytest.raises(attempts.AttemptsExhausted):
        await transcoding.one_pass()


async def test_deletion_that_storage_lists_too_late_for_is_finished_by_the_janitor(
    client: Client, resources: WebContext, proxy: StorageProxy, transcoding: Transcoding
) -> None:
    video = await transcoding.until_final()
    assert await stored(resources.storage, video.id)
    # At first its lists are empty, later they show what was there before.
    proxy.lists_late = True
    assert (await client.post(f"/api/videos/{video.id}/deletion")).status_code == 202
    await removed(video, resources)
    proxy.lists_late = False
    assert await stored(resources.storage, video.id)

    async with resources.queue.open_async():
        await tidy(resources, now=hence(days=8))
    await removed(video, resources)

    assert await stored(resources.storage, video.id) == []
    assert await tidy(resources, now=hence(days=16)) == Tidied()


async def removed(video: Video, resources: WebContext) -> None:
    """Remove a deleted video's files as workers do, until they find no more."""

    async def is_settled() -> bool:
        with suppress(Unsettled):
            await remove_files(video.id, storage=resources.storage)
        return not await Deletion.exists(video_id=video.id)

    await until(is_settled, timeout_s=30)
