"""Two hours cost no more memory and disk at a time than ten minutes do."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from media_recipes import MakeMedia, beeps, card, make_card
from published import make_pass

pytestmark = pytest.mark.soak

logger = logging.getLogger(__name__)

_SAMPLE_S = 0.1
_MIB = 1024**2


class Discarding:
    """Takes everything and keeps nothing but the sum."""

    def __init__(self) -> None:
        self.size_bytes = 0

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None:
        self.size_bytes += len(data) if isinstance(data, bytes) else data.stat().st_size


@dataclass(slots=True)
class Peaks:
    """The most that was in use at one time, of this process with its children, and of disk."""

    memory_bytes: int = 0
    disk_bytes: int = 0

    async def watch(self, work_dir: Path) -> None:
        own = psutil.Process()
        before = own.memory_info().rss
        while True:
            memory = own.memory_info().rss - before + sum(children_bytes(own))
            self.memory_bytes = max(self.memory_bytes, memory)
            self.disk_bytes = max(self.disk_bytes, sum(files_bytes(work_dir)))
            await asyncio.sleep(_SAMPLE_S)


def children_bytes(process: psutil.Process) -> Iterator[int]:
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            yield child.memory_info().rss


def files_bytes(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            yield path.stat().st_size


async def measure(source: Path, work_dir: Path) -> Peaks:
    """Everything at once: the largest pass there is."""
    peaks, sink = Peaks(), Discarding()
    work_dir.mkdir()
    watching = asyncio.create_task(peaks.watch(work_dir))
    try:
        result = await make_pass(source, sink=sink, work_dir=work_dir)
    finally:
        watching.cancel()
    assert result.duration_s == pytest.approx(result.source.duration_s, abs=1)
    assert sink.size_bytes > 0
    return peaks


@pytest.mark.parametrize("kind", ["encoded", "copied"])
async def test_the_peaks_of_two_hours_are_those_of_ten_minutes(
    kind: str, make_media: MakeMedia, tmp_path: Path
) -> None:
    # Two rungs and, when copied, a stream that is only cut.
    gop = ("-g", "20") if kind == "copied" else ()
    picture = card(size="544x306", rate="5", duration_s=60, flashes_s=(1, 58))
    minute = make_card(
        make_media, f"minute {kind}.mp4", *gop, picture=picture, sound=beeps(duration_s=60)
    )
    peaks = {}
    for minutes in (10, 120):
        loops = ("-stream_loop", str(minutes - 1), "-i", str(minute))
        source = make_media(f"{minutes} minutes {kind}.mp4", *loops, "-c", "copy")
        peaks[minutes] = await measure(source, tmp_path / f"work {minutes}")
        logger.info("%s, %d minutes: %s", kind, minutes, peaks[minutes])
    assert peaks[120].memory_bytes <= 1.3 * peaks[10].memory_bytes + 32 * _MIB
    assert peaks[120].disk_bytes <= 1.3 * peaks[10].disk_bytes + 8 * _MIB
