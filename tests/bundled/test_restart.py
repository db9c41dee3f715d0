"""`portal up` stopped in the middle of its work goes on where it was."""

import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from running_portal import create, final_status, read, until
from running_up import Portal, running

from portal.bundled.data_folder import load_environment

STOP_LIMIT_S = 10.0


async def until_encoding(data: Path) -> None:
    address = load_environment(data)["DATABASE_URL"]

    async def is_encoding() -> bool:
        async with await psycopg.AsyncConnection.connect(address) as connection:
            query = "SELECT 1 FROM attempts WHERE outcome IS NULL AND percent > 5"
            return await (await connection.execute(query)).fetchone() is not None

    await until(is_encoding, timeout_s=30)


async def stop_in_mid_transcode(portal: Portal, data: Path, number: signal.Signals) -> float:
    """Returns the seconds that the end took."""
    await until_encoding(data)
    _, took_s = await portal.stop(number)
    return took_s


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_half_transcoded_video_is_finished_after_the_next_start(
    number: signal.Signals, long_video: Path
) -> None:
    with TemporaryDirectory(prefix="portal-test-") as folder:
        data = Path(folder) / "data"
        async with running(data) as portal:
            video = await create(portal.address, long_video, title="Interrupted")
            took_s = await stop_in_mid_transcode(portal, data, number)
        assert took_s < STOP_LIMIT_S

        async with running(data) as portal:
            assert await final_status(portal.address, video["id"], timeout_s=90) == "ready"
            record = await read(portal.address, video["id"])

    assert record["title"] == "Interrupted"
    assert record["transcodeJobId"] == video["transcodeJobId"]
    assert record["playbackUrl"].endswith(f"/hls/{video['id']}/2/master.m3u8")
