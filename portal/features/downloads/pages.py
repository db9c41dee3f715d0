"""Page with the files of a video to save, whose list other pages show, too."""

from collections.abc import Sequence

from quart import Blueprint, redirect, render_template, url_for
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.features.downloads.files import read_files, request_file
from portal.features.downloads.service import DownloadKind, SavedFile
from portal.http.auth import Policy, policy
from portal.http.languages import gettext
from portal.http.server.limits import Rate
from portal.http.videos import read_video
from portal.locale.messages import Message

blueprint = Blueprint("download_pages", __name__)

HEADINGS = {
    DownloadKind.ORIGINAL: Message("Uploaded file"),
    DownloadKind.VIDEO: Message("Video (MP4)"),
    DownloadKind.SOUND: Message("Audio (M4A)"),
    DownloadKind.CAPTIONS: Message("Captions"),
}
# Causes of failures that a second try does not remove.
LASTING_FAILURES = {
    "disk_full": Message("The server has too little disk space for this file."),
    "timed_out": Message("This file takes too long to prepare."),
}


@blueprint.get("/videos/<video_id>/downloads")
@policy(Policy.WATCH)
async def files(video_id: str) -> str:
    """List the files of a video to save."""
    video = await read_video(video_id)
    return await render_template(
        "downloads/page.html",
        video=video,
        groups=_groups(await read_files(video)),
        failures=LASTING_FAILURES,
    )


@blueprint.post("/videos/<video_id>/downloads/<file>")
@policy(Policy.WATCH, rate=Rate.DOWNLOADS)
async def request_again(video_id: str, file: str) -> WerkzeugResponse:
    """Request a file, and show the list of files."""
    video = await read_video(video_id)
    await request_file(video, file)
    return redirect(url_for("download_pages.files", video_id=video.id), 303)


def _groups(listed: Sequence[SavedFile]) -> list[tuple[str, list[SavedFile]]]:
    """Return the headings of the kinds that there are, with their files."""
    groups = [
        (heading, [file for file in listed if file.kind is kind])
        for kind, heading in HEADINGS.items()
    ]
    return [(gettext(heading), group) for heading, group in groups if group]
