"""Reports of players as tests send them, and a film that they are about."""

from itertools import count
from typing import Any

from page_rows import READY
from signed_in import make_video

from portal.database.account_models import Account
from portal.database.models import Rendition, RenditionState, Video
from portal.transcoding.packaging.master import Kind as RenditionKind

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36"
START_MS = 1_795_728_000_000
SESSIONS = count()


def lines(
    video_id: object, *records: tuple[float, str, float], session: str = "", **more: str
) -> str:
    """Return a report of a session, by default a new one: time, state and position of records."""
    session_id = session or f"session-{next(SESSIONS)}"
    facts = "".join(f",{name.replace('_', '-')}={value}" for name, value in more.items())
    return "\n".join(
        f'cid="{video_id}",e=ps,sid="{session_id}",sn={number},sta={state},v=2,'
        f"ts={START_MS + round(at_s * 1000)},pt={round(position_s * 1000)}{facts}"
        for number, (at_s, state, position_s) in enumerate(records)
    )


def played(video_id: object, start_s: float, end_s: float, **more: str) -> str:
    """Return a report of one part that was played."""
    return lines(video_id, (0, "p", start_s), (end_s - start_s, "a", end_s), **more)


async def report(
    client: Any, body: str | bytes, status: int = 204, *, base: str = "", **headers: str
) -> None:
    """Send a report below `base`, which may have a playback token, and check the status."""
    defaults = {"Content-Type": "application/cmcd", "User-Agent": CHROME}
    changes = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await client.post(f"{base}/api/playback", data=body, headers=defaults | changes)
    assert response.status_code == status, await response.get_data()


async def film(owner: Account | None = None, **columns: Any) -> Video:
    """Return a ready video of a hundred seconds in 720p."""
    video = await make_video(owner, **{**READY, "duration_s": 100.0, **columns})
    await Rendition.create(
        version_id=video.version_id,
        kind=RenditionKind.VIDEO,
        name="720p",
        position=1,
        state=RenditionState.COMPLETE,
        width=720,
        height=1280,
    )
    return video
