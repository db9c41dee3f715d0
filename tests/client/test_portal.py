"""The importable client with a running portal: publishing, waiting, lists and events."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from bad_network import network_to
from running_portal import LivePortal, free_port, until

from portal.client import (
    Portal,
    PortalFailure,
    PortalRefused,
    PortalUnreachable,
    VideoFailed,
    calls,
    portal,
)
from portal.retry import Backoff


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "BACKOFF", Backoff(first_s=0.05, cap_s=0.05))
    monkeypatch.setattr(portal, "POLL_INTERVAL_S", 0.05)


async def test_published_file_gets_ready_and_has_events(
    live_portal: LivePortal, short_video: Path, tmp_path: Path
) -> None:
    (damaged := tmp_path / "damaged.mp4").write_bytes(b"no video")
    arrived: list[tuple[int, int]] = []
    async with Portal(live_portal.base_url) as client:
        video = await client.publish(
            short_video,
            categories=["music", 3],
            tags="a, b",
            visibility="unlisted",
            on_sent=lambda *bytes_of: arrived.append(bytes_of),
        )
        assert (video["title"], video["categoryIds"]) == (short_video.stem, [2, 3])
        assert arrived[-1] == (video["sizeBytes"], video["sizeBytes"])
        unlisted = {video["id"] async for video in client.videos(visibility="unlisted")}
        assert video["id"] in unlisted
        ready = await client.wait(video["id"])
        assert ready["status"] == "ready"
        assert ready["playbackUrl"].endswith("/master.m3u8")
        types = []
        async with aclosing(client.events(after="")) as events:
            async for event in events:
                if event["data"]["id"] == video["id"]:
                    types.append(event["type"])
                if types[-1:] == ["video.ready"]:
                    break
        assert types[0] == "video.created"
        with pytest.raises(VideoFailed, match="Export it as MP4") as failed:
            await client.wait((await client.publish(damaged, categories=[1]))["id"])
        assert failed.value.code == "not_a_video"


async def test_events_resume_after_a_broken_connection_and_lists_have_all_pages(
    web: LivePortal, short_video: Path
) -> None:
    received: list[str] = []

    async def follow(url: str) -> None:
        async with Portal(url) as client:
            async for event in client.events(after=""):
                received.append(event["data"]["id"])

    async with network_to(web.base_url) as network, Portal(web.base_url) as client:

        async def publish() -> str:
            return (await client.publish(short_video, categories=[1], tags="heron"))["id"]

        ids = [await publish()]
        following = asyncio.create_task(follow(network.url))
        await until(lambda: received == ids, timeout_s=10)
        ids += [await publish(), await publish()]
        await until(lambda: received == ids, timeout_s=10)
        network.cut()
        ids.append(await publish())
        await until(lambda: received == ids, timeout_s=10)
        following.cancel()
        videos = client.videos(tag="heron", sort="oldest", limit=2)
        assert [video["id"] async for video in videos] == ids
        assert [video async for video in client.videos(status=["ready"])] == []


async def test_failures_have_types_and_remedies(live_portal: LivePortal, tmp_path: Path) -> None:
    (film := tmp_path / "film.avi").write_bytes(b"x")
    (video := tmp_path / "film.mp4").write_bytes(b"x")
    async with Portal(live_portal.base_url) as client:
        with pytest.raises(PortalFailure, match=r"only \.mp4"):
            await client.publish(film, categories=[1])
        with pytest.raises(PortalFailure, match="Choose one of"):
            await client.publish(video, categories=["Herons"])
        with pytest.raises(PortalRefused) as refused:
            await client.publish(video, categories=[1], title="x" * 201)
        error: Any = refused.value
        assert (error.status, error.code) == (422, "validation_failed")
        assert [fault["pointer"] for fault in error.errors] == ["/title"]
        with pytest.raises(PortalRefused, match="no video"):
            await client.wait("5d0e3b8a-2c41-4f6b-9a57-0c1d2e3f4a5b")
    async with Portal(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(PortalUnreachable, match="Cannot connect"):
            await client.wait("none")
