"""A small crowd before a whole portal: nobody gets an error, and what is published gets ready.

`tests/benchmarks/load.py` is the large one, with delays, memory and processor time.
"""

import asyncio
from pathlib import Path

import load_clients
import pytest
from load_clients import POLLS, Crowd, gathered
from running_portal import fresh_database, make_video, run_portal, until

VIEWERS = 200
EDITORS = 5
ARRIVAL_S = 3
STAY_S = 5


@pytest.mark.soak
async def test_two_hundred_viewers_and_five_editors_meet_no_error(
    services: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A slow machine is no error of the portal's.
    monkeypatch.setattr(load_clients, "TIMEOUT_S", 60)
    file = make_video(tmp_path / "load.mp4", seconds=1, size="160x90").read_bytes()
    async with (
        fresh_database(services) as environ,
        run_portal({**environ, "WORK_DIR": str(tmp_path / "work")}) as portal,
    ):
        crowd = Crowd(portal.base_url, file)
        async with gathered(crowd, viewers=VIEWERS, editors=EDITORS, arrival_s=ARRIVAL_S) as record:
            await asyncio.sleep(STAY_S)
            await until(lambda: record.published or record.errors, timeout_s=60)
            assert not record.errors
    polls = sum(len(record.durations_s[kind]) for kind in POLLS)
    assert polls > VIEWERS
