"""The child that copies: its limits, its pauses, sources that break off, and that it ends."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from aiohttp import web
from copied import VIDEO, copy
from media_recipes import MakeMedia
from serving import Hanging, Serve, begin_range, cut

from portal.transcoding.errors import CopyUndeliverable, FailCode, TranscodeFailed

SIGNED = "?X-Amz-Signature=secret"


@pytest.fixture
def source(make_video: MakeMedia) -> Path:
    """Large enough that a connection holds a part of it only."""
    options = ("-g", "60", "-bf", "2", "-b:v", "8M", "-movflags", "+faststart")
    return make_video("running.mp4", *options, size="1280x720", duration_s=20)


def children() -> list[psutil.Process]:
    """The children that copy."""
    found = []
    for process in psutil.Process().children():
        with suppress(psutil.Error):
            if "portal.transcoding.copying" in process.cmdline():
                found.append(process)
    return found


async def test_a_source_is_read_over_http_and_its_address_told_to_nobody(
    source: Path, serve: Serve, tmp_path: Path
) -> None:
    arguments: list[str] = []
    positions: list[float] = []

    async def on_progress(copied_s: float) -> None:
        positions.append(copied_s)
        for child in children():
            # It may have ended since.
            with suppress(psutil.NoSuchProcess):
                arguments.extend(child.cmdline())

    address = await serve(source) + SIGNED
    copied = await copy(source, tmp_path, address=address, on_progress=on_progress)

    assert copied.units(VIDEO) == copied.source_units(VIDEO)
    assert positions == sorted(positions)
    assert positions[-1] == pytest.approx(20, abs=0.1)
    assert not any("secret" in argument for argument in arguments)
    assert not children()


async def test_a_connection_that_breaks_is_taken_up_again(
    source: Path, serve: Serve, tmp_path: Path
) -> None:
    content, asked = source.read_bytes(), 0

    async def unsteady(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        start, response = await begin_range(request, len(content))
        if asked <= 2:
            await response.write(content[start : (start + len(content)) // 2])
            cut(request)
            return response
        with suppress(ConnectionError):
            await response.write(content[start:])
        return response

    copied = await copy(source, tmp_path, address=await serve(unsteady))
    assert asked > 2
    assert copied.units(VIDEO) == copied.source_units(VIDEO)


async def test_a_source_that_breaks_off_for_good_is_no_damaged_one(
    source: Path, serve: Serve, tmp_path: Path
) -> None:
    content, asked = source.read_bytes(), 0

    async def going(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if asked > 1:
            return web.Response(status=403)
        start, response = await begin_range(request, len(content))
        await response.write(content[start : len(content) // 2])
        cut(request)
        return response

    with pytest.raises(TranscodeFailed) as caught:
        await copy(source, tmp_path, address=await serve(going) + SIGNED)
    assert caught.value.code == FailCode.SOURCE_UNREACHABLE
    assert "secret" not in caught.value.detail


LIMITS = {
    FailCode.STALLED: {"stall_s": 0.5},
    FailCode.TIMED_OUT: {"timeout_s": 0.5},
}


@pytest.mark.parametrize("code", LIMITS)
async def test_a_copy_that_does_not_get_on_is_ended(
    source: Path, hanging: Hanging, tmp_path: Path, code: FailCode
) -> None:
    with pytest.raises(TranscodeFailed) as caught:
        await copy(source, tmp_path, address=hanging.address, **LIMITS[code])
    assert caught.value.code == code
    assert not children()


async def test_a_file_that_kills_its_copy_is_encoded_and_a_killed_one_tried_again(
    source: Path, hanging: Hanging, tmp_path: Path
) -> None:
    for number, expected in (
        (signal.SIGSEGV, CopyUndeliverable),
        (signal.SIGKILL, TranscodeFailed),
    ):
        hanging.asked.clear()
        task = asyncio.create_task(copy(source, tmp_path, address=hanging.address))
        await hanging.asked.wait()
        children()[0].send_signal(number)
        with pytest.raises(expected):
            await task
