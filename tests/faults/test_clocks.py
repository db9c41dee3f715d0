"""Clocks that jump while people upload and videos are transcoded.

By libfaketime, which the test extra brings: the wall clock jumps, the monotonic one does not.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from fault_injection import Source, Stack, long_source, running_stack, short_source

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Clock:
    """A wall clock that can be set; processes with its environment go by it."""

    file: Path

    @property
    def environ(self) -> dict[str, str]:
        found = find_spec("libfaketime")
        assert found is not None
        assert found.origin is not None
        library = Path(found.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"
        return {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, offset_s: int) -> None:
        self.file.write_text(f"{offset_s:+d}")


@pytest.fixture
def clocked() -> Iterator[tuple[Path, Clock]]:
    """A folder for a portal, and a clock for some of its processes."""
    with TemporaryDirectory(prefix="portal-fault-") as folder:
        Path(folder).chmod(0o755)
        clock = Clock(Path(folder) / "clock")
        clock.set(0)
        yield Path(folder), clock


async def upset(stack: Stack, clock: Clock, sources: list[Source], jumps_s: Sequence[int]) -> None:
    """People publish while the clock jumps; in the end it is right, and all must be well."""
    async with asyncio.TaskGroup() as group:
        for number, offset_s in enumerate(jumps_s):
            clock.set(offset_s)
            group.create_task(stack.publish(sources[number % len(sources)]))
            await asyncio.sleep(2)
        clock.set(0)
    await stack.settle_and_audit()


def jumps_s(seed: int) -> list[int]:
    rng = Random(seed)  # noqa: S311  # to be repeated, not to be secret
    return [rng.choice((-1, 1)) * rng.randrange(60, 2 * DAY_S) for _ in range(3)]


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
async def test_clock_of_the_database(
    seed: int, clocked: tuple[Path, Clock], tmp_path: Path, fault_tally: Counter[str]
) -> None:
    folder, clock = clocked
    sources = [long_source(tmp_path), short_source(tmp_path)]
    async with running_stack(folder, database_environ=clock.environ) as stack:
        await upset(stack, clock, sources, jumps_s(seed))
    fault_tally["database's clock jumps"] += 4


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
async def test_clocks_of_web_and_workers(
    seed: int, clocked: tuple[Path, Clock], tmp_path: Path, fault_tally: Counter[str]
) -> None:
    folder, clock = clocked
    sources = [long_source(tmp_path), short_source(tmp_path)]
    async with running_stack(folder, **clock.environ) as stack:
        await upset(stack, clock, sources, jumps_s(seed))
    fault_tally["portal's clock jumps"] += 4
