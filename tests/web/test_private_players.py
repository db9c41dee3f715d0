"""Private videos in players that know nothing of the portal."""

import sys
from pathlib import Path

import pytest
from closed_portal import closed_portal
from command_line import run_program
from running_portal import make_video

SECONDS, RATE = 9, 30
DECODE = """
import sys, av
with av.open(sys.argv[1]) as container:
    print(sum(1 for _ in container.decode(video=0)))
"""


@pytest.mark.slow
async def test_record_and_link_have_addresses_that_ffmpeg_plays(
    services: dict[str, str], tmp_path: Path
) -> None:
    film = make_video(
        tmp_path / "film.mp4", seconds=SECONDS, size="640x360", rate=RATE, copyable=False
    )
    async with closed_portal(services, tmp_path, film) as closed:
        for told in (await closed.ask("GET"), await closed.make_link()):
            address = told["playbackUrl"]
            code, said, complaints = await run_program(sys.executable, "-c", DECODE, address)
            assert (code, said.strip()) == (0, str(SECONDS * RATE)), complaints
