"""`portal up` stopped in the middle of its work goes on where it was."""

import signal
from pathlib import Path

import pytest
from api_client import rows
from running_portal import create, final_status, read, until
from running_up import Portal, running

from portal.bundled.data_folder import load_environment

STOP_LIMIT_S = 10.0


async def stop_in_mid_transcode(portal: Portal, data: Path, number: signal.Signals) -> float:
    """Returns the seconds that the end took."""
    address = load_environment(data)["DATABASE_URL"]
    encoding = "SELECT 1 FROM attempts WHERE outcome IS NULL AND percent > 5"
    await until(lambda: rows(address, encoding), timeout_s=30)
    _, took_s = await portal.stop(number)
    return took_s


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_half_transcoded_video_is_finished_after_the_next_start(
    number: signal.Signals, long_video: Path, tmp_path: Path
) -> None:
    async with running(tmp_path) as portal:
        video = await create(portal.address, long_video, title="Interrupted")
        assert await stop_in_mid_transcode(portal, tmp_path, number) < STOP_LIMIT_S

    async with running(tmp_path) as portal:
        assert await final_status(portal.address, video["id"], timeout_s=90) == "ready"
        record = await read(portal.address, video["id"])

    assert record["title"] == "Interrupted"
    assert record["playbackUrl"].endswith(f"/hls/{video['id']}/2/master.m3u8")
