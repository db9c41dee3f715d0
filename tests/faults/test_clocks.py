"""Clocks that jump while people upload and videos are transcoded.

By libfaketime, which the test extra brings: the wall clock jumps, the monotonic one does not.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from fault_injection import long_source, running_stack, short_source

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


@pytest.mark.soak
@pytest.mark.parametrize(
    ("whose", "seed"),
    [*(("database", seed) for seed in (1, 2, 3, 4)), *(("portal", seed) for seed in (1, 2))],
)
async def test_clock_that_jumps_costs_nothing(
    whose: str, rng: Random, clocked: tuple[Path, Clock], tmp_path: Path, fault_tally: Counter[str]
) -> None:
    """People publish while the clock jumps; in the end it is right, and all must be well."""
    folder, clock = clocked
    sources = [long_source(tmp_path), short_source(tmp_path)]
    jumps_s = [rng.choice((-1, 1)) * rng.randrange(60, 2 * DAY_S) for _ in range(3)]
    of_database, of_portal = (clock.environ if whose == it else {} for it in ("database", "portal"))
    async with running_stack(folder, database_environ=of_database, **of_portal) as stack:
        async with asyncio.TaskGroup() as group:
            for number, offset_s in enumerate(jumps_s):
                clock.set(offset_s)
                group.create_task(stack.publish(sources[number % len(sources)]))
                await asyncio.sleep(2)
            clock.set(0)
        await stack.settle_and_audit()
    fault_tally[f"{whose}'s clock jumps"] += 4
