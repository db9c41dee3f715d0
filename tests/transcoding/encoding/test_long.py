"""A film of two hours takes no more memory and disk than one of ten minutes."""

import asyncio
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from media_recipes import MakeMedia, beeps, card, make_card
from published import make_pass

pytestmark = pytest.mark.soak

SAMPLE_S = 0.1
MIB = 1024**2


class Discarding:
    """Sink that keeps nothing."""

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None: ...


async def watch_peaks(work_dir: Path, peaks: dict[str, int]) -> None:
    """Record the highest use of memory by this process and its children, and of disk."""
    own = psutil.Process()
    before = own.memory_info().rss
    while True:
        memory = own.memory_info().rss - before
        disk = 0
        for child in own.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                memory += child.memory_info().rss
        for path in work_dir.rglob("*"):
            with suppress(FileNotFoundError):
                disk += path.stat().st_size
        peaks["memory"] = max(peaks.get("memory", 0), memory)
        peaks["disk"] = max(peaks.get("disk", 0), disk)
        await asyncio.sleep(SAMPLE_S)


@pytest.mark.parametrize("kind", ["encoded", "copied"])
async def test_the_peaks_of_two_hours_are_those_of_ten_minutes(
    kind: str, make_media: MakeMedia, tmp_path: Path
) -> None:
    # The size gives two rungs; a copied source also has a stream that is only cut.
    gop = ("-g", "20") if kind == "copied" else ()
    picture = card(size="544x306", rate="5", duration_s=60, flashes_s=(1, 58))
    minute = make_card(
        make_media, f"minute {kind}.mp4", *gop, picture=picture, sound=beeps(duration_s=60)
    )
    peaks: dict[int, dict[str, int]] = {10: {}, 120: {}}
    for minutes, used in peaks.items():
        loops = ("-stream_loop", str(minutes - 1), "-i", str(minute))
        source = make_media(f"{minutes} minutes {kind}.mp4", *loops, "-c", "copy")
        work_dir = tmp_path / str(minutes)
        watching = asyncio.create_task(watch_peaks(work_dir, used))
        try:
            result = await make_pass(source, sink=Discarding(), work_dir=work_dir)
        finally:
            watching.cancel()
        assert result.output.duration_s == pytest.approx(minutes * 60, abs=1)
    assert peaks[120]["memory"] <= 1.3 * peaks[10]["memory"] + 32 * MIB
    assert peaks[120]["disk"] <= 1.3 * peaks[10]["disk"] + 8 * MIB
