"""Processes die at random moments while people upload and videos are transcoded.

Whatever the order: every accepted video ends up ready and plays, and nothing is lost, doubled or
left. A seed repeats the choices, not the timing: `PORTAL_FAULT_SEED=7 pytest -m slow tests/faults`.
"""

from collections import Counter

import pytest
from chaos import chaos
from fault_injection import Source, Stack
from storage_proxy import FIRST_SOAK_SEED, seeds


@pytest.mark.parametrize("seed", seeds(1, soak=3))
async def test_nothing_is_lost_doubled_or_left(
    seed: int, stack: Stack, sources: list[Source], fault_tally: Counter[str]
) -> None:
    faults, videos = (20, 8) if seed >= FIRST_SOAK_SEED else (8, 4)
    await chaos(stack, sources, fault_tally, seed=seed, faults=faults, videos=videos)
