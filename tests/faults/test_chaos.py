"""Processes die at random moments while people upload and videos are transcoded.

Whatever the order: every accepted video ends up ready and plays, and nothing is lost, doubled or
left. A seed repeats the choices, not the timing: `PORTAL_FAULT_SEED=7 pytest -m slow tests/faults`.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from fault_injection import Source, Stack, large_source, long_source, running_stack, short_source
from random_faults import RandomFaults

FAULTS, VIDEOS = 8, 4


@pytest.fixture
async def stack() -> AsyncIterator[Stack]:
    """A durable portal with two workers."""
    # Outside pytest's own folder, which each run closes to the database's account.
    with TemporaryDirectory(prefix="portal-fault-") as folder:
        Path(folder).chmod(0o755)
        async with running_stack(Path(folder)) as stack:
            yield stack


@pytest.fixture
def sources(tmp_path: Path) -> list[Source]:
    """What people publish: sent whole, completed later, sent in parts."""
    return [short_source(tmp_path), long_source(tmp_path), large_source(tmp_path)]


async def test_nothing_is_lost_doubled_or_left(
    stack: Stack, sources: list[Source], rng: Random
) -> None:
    faults = RandomFaults(stack, rng)

    async def publish_later(source: Source, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        await stack.publish(source)

    async with asyncio.TaskGroup() as group:
        for number in range(VIDEOS):
            delay_s = rng.uniform(0, FAULTS)
            group.create_task(publish_later(sources[number % len(sources)], delay_s))
        group.create_task(faults.inflict(FAULTS))
    superseded = await stack.settle_and_audit()
    print(f"{superseded} superseded objects after {dict(faults.tally)}")  # noqa: T201
