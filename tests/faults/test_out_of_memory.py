"""A transcode that runs out of memory: ffmpeg's own allocations fail, from some moment on."""

import random
import resource
from collections import Counter
from pathlib import Path

import psutil
import pytest
from fault_injection import Source, Stack
from running_portal import until

SEEDS = range(1, 21)
# What a run may still take beside what it has; its pools are filled at some time.
MOST_LEFT_BYTES = 16 * 1024**2
ATTEMPTS = "SELECT outcome::text, error_code FROM attempts WHERE video_id = %s"
# Some libraries report it, others end the process.
CODES = {"out_of_memory", "ffmpeg_failed"}


async def leave_no_memory(stack: Stack, chance: random.Random) -> None:
    """Let the running ffmpegs have hardly more memory than they have."""

    async def are_limited() -> bool:
        limited = 0
        for encoder in stack.encoders():
            try:
                most = encoder.memory_info().vms + chance.randrange(MOST_LEFT_BYTES)
                encoder.rlimit(resource.RLIMIT_AS, (most, most))
            except psutil.NoSuchProcess:
                continue
            limited += 1
        return limited > 0

    await until(are_limited, timeout_s=60, interval_s=chance.uniform(0.02, 0.5))


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
async def test_transcode_without_memory_is_done_again(
    seed: int, stack: Stack, long_video: Path, fault_tally: Counter[str]
) -> None:
    video = await stack.publish(Source(long_video, 20.0))
    await leave_no_memory(stack, random.Random(seed))  # noqa: S311
    await stack.settle_and_audit()
    attempts = await stack.rows(ATTEMPTS, video.id)
    failed = [code for outcome, code in attempts if outcome == "failed"]
    assert set(failed) <= CODES
    fault_tally.update(f"out of memory: {code}" for code in failed or ["none noticed"])
