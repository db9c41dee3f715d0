"""People publish while everything is hurt; then all must be whole."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from random import Random

from fault_injection import Source, Stack
from random_faults import KINDS, Fault, RandomFaults


async def chaos(
    stack: Stack,
    sources: list[Source],
    tally: Counter[str],
    *,
    seed: int,
    faults: int,
    videos: int,
    kinds: Mapping[str, Fault] = KINDS,
    pause_s: tuple[float, float] = (0.1, 2.5),
) -> None:
    """One round: people publish while everything is hurt, then all is waited for and audited.

    `pause_s` is the shortest and the longest time between two faults.
    """
    rng = Random(seed)  # noqa: S311  # to be repeated, not to be secret
    faults_injected = RandomFaults(stack, rng, kinds)

    async def publish_later(source: Source, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        await stack.publish(source)

    async with asyncio.TaskGroup() as group:
        for number in range(videos):
            delay_s = rng.uniform(0, faults)
            group.create_task(publish_later(sources[number % len(sources)], delay_s))
        group.create_task(faults_injected.inflict(faults, pause_s=pause_s))
    findings = await stack.settle_and_audit()
    tally.update(faults_injected.tally)
    tally.update({"videos": videos, "rounds": 1, "superseded objects": len(findings.superseded)})
