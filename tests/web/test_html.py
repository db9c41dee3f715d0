"""Every page and fragment is valid HTML, as html-validate reads the WHATWG's text."""

from pathlib import Path
from uuid import uuid4

from api_client import Client
from front_end import STATIC, install_tools, run_node
from page_rows import READY, make_attempt, make_rendition, make_row
from statistics_rows import ADD_DAYS, ADD_PERIOD

from portal.database.connection import execute
from portal.database.models import Caption, VideoStatus
from portal.transcoding.packaging.webvtt import Cue, webvtt

RULES = STATIC / "htmlvalidate.json"


async def test_pages_are_valid_html(client: Client, tmp_path: Path) -> None:
    new = await client.get("/")
    (tmp_path / "new.html").write_bytes(await new.get_data(as_text=False))
    for name, address in (await _pages()).items():
        response = await client.get(address)
        (tmp_path / f"{name}.html").write_bytes(await response.get_data(as_text=False))
    program = install_tools() / "html-validate" / "bin" / "html-validate.mjs"
    files = [str(path) for path in sorted(tmp_path.glob("*.html"))]
    run_node(str(program), "--config", str(RULES), "--max-warnings", "0", *files)


async def _pages() -> dict[str, str]:
    """The address of each kind of page, with videos in every state behind them."""
    waiting = await make_row(1)
    working = await make_row(2)
    await make_attempt(working)
    ready = await make_row(3, **READY, title='<b>"Quoted" & marked</b>', tags="sea, sun")
    await make_rendition(ready, "360p")
    for video_id in (ready.id, None):
        await execute(ADD_DAYS, video_id, 28)
    await execute(ADD_PERIOD, ready.id)
    cue = webvtt([Cue(start_s=1000, end_s=3000, text="Some of them leave.")])
    track = {"language": "en", "label": "English", "source": "upload", "cue_count": 1, "text": cue}
    await Caption.create(video_id=ready.id, **track)
    failed = await make_row(4, status=VideoStatus.FAILED, failure_code="transcode_failed")
    videos = {"waiting": waiting, "working": working, "ready": ready, "failed": failed}
    return {
        "library": "/",
        "found": "/?q=quoted&tag=sea&category=1&sort=title",
        "nothing": "/?q=%3Cxyzzy%3E",
        "progress": f"/library/progress?id={working.id}&id={ready.id}",
        "rows": f"/videos/progress?id={working.id}&id={ready.id}&id={failed.id}",
        "upload": "/upload",
        "record": "/record",
        "docs": "/api/docs",
        "missing": "/videos/none",
        "edit": f"/videos/{ready.id}/edit",
        "cuts": f"/videos/{ready.id}/cuts",
        "delete": f"/videos/{ready.id}/delete",
        "statistics": f"/videos/{ready.id}/statistics",
        "library-statistics": "/statistics",
        "table": "/videos",
        "toast": "/videos?did=delete&done=1&undo=" + str(uuid4()),
        **{name: f"/videos/{video.id}" for name, video in videos.items()},
    }
