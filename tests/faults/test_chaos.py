"""Processes die at random moments while people upload and videos are transcoded.

Whatever the order: every accepted video ends up ready and plays, and nothing is lost, doubled or
left. A seed repeats the choices, not the timing: `PORTAL_FAULT_SEED=7 pytest -m slow tests/faults`.
"""

from collections import Counter
from pathlib import Path

import pytest
from chaos import chaos
from fault_injection import Source, Stack, running_stack
from random_faults import KINDS
from seaweed import prepare_seaweed
from storage_proxy import FIRST_SOAK_SEED, seeds

# Asked to end, SeaweedFS may serve half of its parts for minutes; whoever runs it kills it then.
SEAWEED_KINDS = {name: fault for name, fault in KINDS.items() if name != "stop storage"}


@pytest.mark.parametrize("seed", seeds(1, soak=12))
async def test_nothing_is_lost_doubled_or_left(
    seed: int, stack: Stack, sources: list[Source], fault_tally: Counter[str]
) -> None:
    faults, videos = (20, 8) if seed >= FIRST_SOAK_SEED else (8, 4)
    await chaos(stack, sources, fault_tally, seed=seed, faults=faults, videos=videos)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(200, 203))
async def test_nothing_is_lost_doubled_or_left_on_another_storage(
    seed: int, sources: list[Source], fault_tally: Counter[str], fault_folder: Path
) -> None:
    """A server that keeps half-sent uploads over its own death, as the embedded one does not."""
    folder = fault_folder / f"seaweed-{seed}"
    folder.mkdir()
    async with running_stack(folder, seaweed=prepare_seaweed(folder / "storage")) as stack:
        await chaos(
            stack, sources, fault_tally, seed=seed, faults=20, videos=8, kinds=SEAWEED_KINDS
        )
