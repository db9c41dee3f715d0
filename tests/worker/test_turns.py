"""One worker with one slot for encodes, and a long film in it: who waits for that, and who not."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from api_client import ENCODING, rows, until_found
from running_portal import (
    LivePortal,
    call,
    create,
    final_status,
    make_video,
    process,
    read,
    run_ffmpeg,
    until,
)

# On a machine that does nothing else.
REFUSED_WITHIN_S, COPIED_WITHIN_S = 5, 6
WAITING_ENCODES = """
SELECT args->>'video_id' FROM procrastinate_jobs
WHERE queue_name = 'transcode' AND status = 'todo' ORDER BY priority DESC, id
"""


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty minutes of 1080p60 that can't be copied, by one second over and over."""
    folder = tmp_path_factory.mktemp("film")
    picture = "smptehdbars=size=1920x1080:rate=60:duration=1"
    made = ("-f", "lavfi", "-i", picture, "-c:v", "mpeg4")
    second = run_ffmpeg(folder / "second.mp4", *made)
    return run_ffmpeg(folder / "film.mp4", "-stream_loop", "1199", "-i", str(second), "-c", "copy")


@pytest.fixture
async def busy(web: LivePortal, film: Path) -> AsyncIterator[LivePortal]:
    """A portal whose worker encodes the film; at the end it still does."""
    video = await create(web.base_url, film)
    environ = {**web.environ, "WORKER_CONCURRENCY": "1"}
    async with process("worker", environ):
        await until_found(web.environ["DATABASE_URL"], ENCODING)
        yield web
        assert (await read(web.base_url, video["id"]))["status"] == "processing"


def encrypted(path: Path) -> Path:
    plain = make_video(path.with_name("plain.mp4"))
    key = ("-encryption_key", "00112233445566778899aabbccddeeff")
    ids = ("-encryption_kid", "000102030405060708090a0b0c0d0e0f")
    scheme = ("-encryption_scheme", "cenc-aes-ctr")
    return run_ffmpeg(path, "-i", str(plain), "-c", "copy", *scheme, *key, *ids)


def sound_only(path: Path) -> Path:
    return run_ffmpeg(path, "-f", "lavfi", "-i", "sine=duration=2", "-c:a", "aac")


REFUSED: dict[str, Callable[[Path], Path]] = {
    "encrypted": encrypted,
    "no_video_track": sound_only,
}


async def document(portal: LivePortal, video: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = await call(
        "GET", f"{portal.base_url}/api/videos/{video['id']}/transcode"
    )
    return found


@pytest.mark.slow
async def test_what_needs_no_encoder_does_not_wait_for_a_film(
    busy: LivePortal, short_video: Path, tmp_path: Path
) -> None:
    for code, make in REFUSED.items():
        video = await create(busy.base_url, make(tmp_path / f"{code}.mp4"))
        status = await final_status(busy.base_url, video["id"], timeout_s=REFUSED_WITHIN_S)
        assert status == "failed"
        assert (await document(busy, video))["failure"]["code"] == code
    copied = await create(busy.base_url, short_video)
    status = await final_status(busy.base_url, copied["id"], timeout_s=COPIED_WITHIN_S)
    assert status == "ready"


@pytest.mark.slow
async def test_short_clips_are_encoded_before_long_ones_that_came_first(
    busy: LivePortal, tmp_path: Path
) -> None:
    lengths_s = {"long": 120, "middle": 30, "short": 2}
    files = {
        name: make_video(
            tmp_path / f"{name}.mp4", seconds=seconds, size="854x480", rate=5, copyable=False
        )
        for name, seconds in lengths_s.items()
    }
    # By their size alone the short one would come last.
    files["short"].write_bytes(files["short"].read_bytes() + bytes(10_000_000))
    videos = {name: await create(busy.base_url, file) for name, file in files.items()}

    async def all_wait() -> bool:
        return len(await rows(busy.environ["DATABASE_URL"], WAITING_ENCODES)) == len(videos)

    await until(all_wait, timeout_s=15)
    order = await rows(busy.environ["DATABASE_URL"], WAITING_ENCODES)
    assert [video_id for (video_id,) in order] == [
        videos[name]["id"] for name in ("short", "middle", "long")
    ]
    places = {name: (await document(busy, video)) for name, video in videos.items()}
    assert {name: it["queuePosition"] for name, it in places.items()} == {
        "short": 1,
        "middle": 2,
        "long": 3,
    }
    assert {it["stage"] for it in places.values()} == {"waiting"}
