"""Copy a source's tracks into segments: the parent's side, which runs the child process."""

import asyncio
import errno
import json
import math
import signal
import sys
from asyncio import StreamReader
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from portal.processes import child
from portal.transcoding.errors import CopyUndeliverable, FailCode, TranscodeFailed
from portal.transcoding.probing.edits import OPEN_EDITS
from portal.transcoding.probing.probe import reading_options, source_address

# The child writes no compiled modules (-B), as the probe's.
_CHILD = ("-I", "-B", "-m", "portal.transcoding.copying")
# Address space, as the probe's; most of it is for the index.
_MEMORY_BYTES = 4 * 1024**3
# A segment lasts at most about 13 s, so its bit rate may be 600 Mbit/s.
_MAX_FILE_BYTES = 1024**3
_STALL_LIMIT_S = 120.0
_STDERR_TAIL_BYTES = 4000
_FAILURES = {
    "unreachable": FailCode.SOURCE_UNREACHABLE,
    "out_of_memory": FailCode.OUT_OF_MEMORY,
}

# Called with the end of the latest segment, in seconds of the film.
OnCopied = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Remuxed:
    """Result of a copy.

    `dropped` has the reasons why sound was dropped, by its name. `pieces` are parts of the picture
    whose segments are missing, as (begin, end) in seconds of the film: one at its beginning and one
    at its end at most. `left_out_frames` is the number of frames in these and of hidden ones.
    """

    dropped: Mapping[str, str]
    pieces: Sequence[tuple[float, float]]
    left_out_frames: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Tracks and times of a source that are copied.

    `tracks` has the indexes of streams, as FFmpeg counts all of a source, by the names of their
    renditions, the picture first. Times of the film count from its first shown frame. Nothing is
    copied after `end_s`. Edit lists may hide the beginning of all tracks, which lasts `lead_s`
    seconds, and the end of a rendition from `hidden_from_s` on. None as `lead_s` leaves edit lists
    to FFmpeg.
    """

    tracks: Mapping[str, int]
    end_s: float
    lead_s: float | None = None
    hidden_from_s: Mapping[str, float] = field(default_factory=dict)


async def remux(
    source_url: str,
    selection: Selection,
    *,
    work_dir: Path,
    on_progress: OnCopied,
    paused: asyncio.Event,
    timeout_s: float,
    stall_s: float = _STALL_LIMIT_S,
) -> Remuxed:
    """Write init segments, segments and playlists into a folder of each rendition in `work_dir`.

    Visible frames that may depend on hidden ones are missing in the result. While `paused` is set,
    the child is stopped.

    Reasons why sound is dropped are `codec`, `gaps`, `damaged`, `truncated` and `empty`.
    Its folder may contain segments; the caller discards them and encodes the sound.

    Raises CopyUndeliverable, TranscodeFailed if the source can't be read, the copy takes too long
    or memory is short, and OSError if files can't be written.
    """
    limits = child.Limits(
        nice=0,
        memory_bytes=_MEMORY_BYTES,
        cpu_s=math.ceil(timeout_s),
        file_bytes=_MAX_FILE_BYTES,
    )
    process = await child.spawn((sys.executable, *_CHILD), limits=limits, stdin=True)
    watch = child.Watch(timeout_s, stall_s)
    readers = (
        child.ask(process, _request(source_url, selection, work_dir)),
        _follow(cast("StreamReader", process.stdout), watch, on_progress),
        child.read_tail(process.stderr, _STDERR_TAIL_BYTES),
    )
    try:
        _, answer, complaints = await child.attend(process, watch, *readers, paused=paused)
    except child.Stalled:
        raise TranscodeFailed(FailCode.STALLED, detail="copying") from None
    except child.OutOfTime:
        raise TranscodeFailed(FailCode.TIMED_OUT, detail="copying") from None
    finally:
        await child.stop(process)
    if process.returncode:
        raise _error_of_crash(process.returncode, complaints)
    return _interpret(answer)


def _request(source_url: str, selection: Selection, folder: Path) -> dict[str, Any]:
    """Return what the child is asked for."""
    address, protocols = source_address(source_url)
    options = reading_options(protocols)
    if selection.lead_s is not None:
        options |= OPEN_EDITS
    return {
        "source": address,
        "options": options,
        "folder": str(folder),
        **asdict(selection),
    }


def _error_of_crash(returncode: int, complaints: bytes) -> TranscodeFailed | CopyUndeliverable:
    """Return the error for a child that ended without an answer."""
    text = complaints.decode(errors="replace")
    detail = f"copying ended with {child.describe_exit(returncode)}: {text}"
    if returncode == -signal.SIGXCPU:
        return TranscodeFailed(FailCode.TIMED_OUT, detail=detail)
    if child.was_ended_from_outside(returncode):
        return TranscodeFailed(FailCode.FFMPEG_FAILED, detail=detail)
    # The content of the file crashed the child.
    return CopyUndeliverable("crashed", detail=detail)


async def _follow(
    stdout: StreamReader, watch: child.Watch, on_progress: OnCopied
) -> dict[str, Any]:
    """Report the child's progress, and return its last line."""
    answer: dict[str, Any] = {}
    while line := await stdout.readline():
        answer = json.loads(line)
        if (at_s := answer.get("at_s")) is not None:
            watch.saw(at_s)
            await on_progress(at_s)
    return answer


def _interpret(answer: Mapping[str, Any]) -> Remuxed:
    """Return the result in an answer. Raises as `remux` if the answer is an error."""
    error = answer.get("error")
    detail = answer.get("detail", "")
    if error is None:
        return Remuxed(
            dropped=answer["dropped"],
            pieces=[(begin_s, end_s) for begin_s, end_s in answer["pieces"]],
            left_out_frames=answer["left_out_frames"],
        )
    if (code := _FAILURES.get(error)) is not None:
        raise TranscodeFailed(code, detail=detail)
    if error == "undeliverable":
        raise CopyUndeliverable(answer["reason"], detail=detail)
    if answer["errno"] == errno.EFBIG:
        raise CopyUndeliverable(
            "too_large", detail="a segment exceeds the limit on the size of files"
        )
    raise OSError(answer["errno"], detail)
