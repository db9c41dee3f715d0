"""Reasons of released passes, in the log and for the operator."""

import asyncio
import errno
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from passes import Worker, begun, first_attempt
from running_portal import make_video

from portal.database.models import Attempt, Outcome, Video
from portal.database.work_models import MadeSegment, PassPart
from portal.errors import StorageUnavailable
from portal.films import encoding, passes
from portal.transcoding.encoding.sink import pass_folder
from portal.transcoding.errors import DiskFull, FailCode, TranscodeFailed

# The message of a timeout is empty, so the type is shown.
SILENT = StorageUnavailable()
SILENT.__cause__ = TimeoutError()


@pytest.mark.parametrize(
    ("error", "reason", "code"),
    [
        (SILENT, "TimeoutError", "storage_unavailable"),
        (psycopg.OperationalError("gone"), "gone", "database_unavailable"),
        (psycopg.errors.QueryCanceled("too slow"), "too slow", "database_unavailable"),
        (DiskFull(Path("/work")), "no space left on the disk of /work", "disk_full"),
        (asyncio.CancelledError(), "the job is cancelled or the worker ends", None),
    ],
)
async def test_released_pass_records_the_reason(
    worker: Worker,
    short_video: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
    reason: str,
    code: str | None,
) -> None:
    video = await worker.publish(short_video)
    attempt = await first_attempt(video)

    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("portal.films.sources.check_source", fail)
    with pytest.raises(type(error)):
        await worker.run(attempt)
    messages = [record.getMessage() for record in caplog.records]
    assert f"Pass released: {reason}" in messages
    row = await Attempt.get(video_id=video.id)
    assert (row.outcome, row.error_code) == ("handed_back", code)
    assert row.error_detail == (reason if code else None)


async def test_pass_gives_way_to_a_video_that_waits(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "MIN_RUN_S", 0)
    monkeypatch.setattr(encoding, "LOOK_S", 0)
    clip = make_video(worker.folder / "clip.mp4", size="640x360")
    video = await worker.look_into(await worker.publish(clip))
    attempt = await begun(video.id)

    async def another_waits(job_id: int) -> bool:
        return job_id == video.complete_job_id

    monkeypatch.setattr(encoding, "is_overtaken", another_waits)
    with pytest.raises(encoding.Preempted):
        await passes.make_missing(attempt, worker.tools)
    assert (await Attempt.get(id=attempt.id)).outcome == Outcome.HANDED_BACK
    assert (await Video.get(id=video.id)).complete_job_id is not None


@pytest.mark.parametrize(("lacks", "outcome"), [(True, "handed_back"), (False, "failed")])
async def test_lack_of_memory_is_not_the_fault_of_a_file(
    worker: Worker, short_video: Path, monkeypatch: pytest.MonkeyPatch, lacks: bool, outcome: str
) -> None:
    """A limit on the address space is what a low limit of the worker itself amounts to."""
    video = await worker.publish(short_video)
    attempt = await first_attempt(video)
    monkeypatch.setattr("portal.transcoding.probing.probe._MEMORY_BYTES", 100 * 1024**2)
    for module in ("queue.tries", "transcoding.probing.probe"):
        monkeypatch.setattr(f"portal.{module}.lacks_memory", lambda: lacks)
    with pytest.raises(TranscodeFailed):
        await worker.run(attempt)
    row = await Attempt.get(video_id=video.id)
    assert (row.outcome, row.error_code) == (outcome, "out_of_memory")


def test_limit_on_the_address_space_is_noticed() -> None:
    code = (
        "import resource, sys; from portal.processes.child import lacks_memory;"
        "resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), -1)); print(lacks_memory())"
    )
    for limit_bytes, words in ((1024**3, b"True\n"), (-1, b"False\n")):
        command = (sys.executable, "-c", code, str(limit_bytes))
        assert subprocess.run(command, capture_output=True, check=True).stdout == words


async def test_parts_with_faults_of_the_network_are_made_again_if_the_film_has_faults(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    film = make_video(worker.folder / "film.mp4", copyable=False)
    video = await worker.publish(film)
    attempt = await first_attempt(video)
    of_parts = MadeSegment.exclude(rendition__startswith="audio")

    async def fail(*_: object, **__: object) -> None:
        assert await of_parts.exists()
        await PassPart.filter(version_id=video.id).update(network_faults=1)
        raise TranscodeFailed(FailCode.SOURCE_UNREACHABLE)

    monkeypatch.setattr("portal.films.whole_films.assemble", fail)
    with pytest.raises(StorageUnavailable):
        await worker.run(attempt)
    assert not await PassPart.exists()
    assert not await of_parts.exists()


@pytest.mark.parametrize(
    ("error", "free_bytes", "expected"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 10**9, DiskFull),
        (OSError(errno.EIO, "Input/output error"), 0, OSError),
        # ffmpeg doesn't always report a full disk.
        (TranscodeFailed(FailCode.FFMPEG_FAILED), 1000, DiskFull),
        (TranscodeFailed(FailCode.FFMPEG_FAILED), 10**9, TranscodeFailed),
    ],
)
def test_full_disk_is_distinguished_from_other_failures(
    error: Exception,
    free_bytes: int,
    expected: type[Exception],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free_bytes))
    with pytest.raises(expected), pass_folder(tmp_path):
        raise error
    assert list(tmp_path.iterdir()) == []
