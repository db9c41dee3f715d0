"""A pass that has to be repeated says why, in the log and to the operator."""

import asyncio
import errno
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from api_client import Client
from passes import first_attempt, pass_of, published_file

from portal.database.models import Attempt
from portal.errors import StorageUnavailable
from portal.transcoding.encoding.segment_upload import pass_folder
from portal.transcoding.errors import DiskFull, FailCode, TranscodeFailed
from portal.web.composition import WebContext

# What runs out of time says nothing itself.
SILENT = StorageUnavailable()
SILENT.__cause__ = TimeoutError()


@pytest.mark.parametrize(
    ("trouble", "why", "code"),
    [
        (SILENT, "TimeoutError", "storage_unavailable"),
        (psycopg.OperationalError("gone"), "gone", "database_unavailable"),
        (DiskFull(Path("/work")), "no space left on the disk of /work", "disk_full"),
        (asyncio.CancelledError(), "told to end", None),
    ],
)
async def test_pass_that_is_released_says_why(
    client: Client,
    resources: WebContext,
    short_video: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: BaseException,
    why: str,
    code: str | None,
) -> None:
    video = await published_file(client, resources, short_video)
    attempt = await first_attempt(video)

    async def fail(*_: object, **__: object) -> None:
        raise trouble

    monkeypatch.setattr("portal.processing.sources.check_source", fail)
    with pytest.raises(type(trouble)):
        await pass_of(attempt, resources, tmp_path).make_playable()
    lines = [it.getMessage() for it in caplog.records]
    assert f"Pass released: {why}" in lines
    found = await Attempt.get(video_id=video.id)
    assert (found.outcome, found.error_code) == ("handed_back", code)
    assert found.error_detail == (why if code else None)


@pytest.mark.parametrize(
    ("error", "free_bytes", "expected"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 10**9, DiskFull),
        (OSError(errno.EIO, "Input/output error"), 0, OSError),
        # ffmpeg does not always say that it had no room.
        (TranscodeFailed(FailCode.FFMPEG_FAILED), 1000, DiskFull),
        (TranscodeFailed(FailCode.FFMPEG_FAILED), 10**9, TranscodeFailed),
    ],
)
def test_disk_without_room_is_told_from_other_failures(
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
