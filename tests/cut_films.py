"""Cuts of films, made in this process."""

from pathlib import Path
from uuid import UUID

from api_client import Client
from passes import make_missing, make_playable, published_file, tools_for
from stored_objects import stored

from portal.database.models import Rendition, Version, Video, VideoStatus
from portal.features import VERSION_HOOKS
from portal.features.cuts import service as cuts
from portal.films import passes, storyboards
from portal.http.composition import WebContext
from portal.storage.objects import output_root
from portal.transcoding.packaging.master import MASTER_NAME, Kind
from portal.transcoding.planning.kept import Interval


async def whole_video(client: Client, resources: WebContext, film: Path, folder: Path) -> Video:
    """Publish a film, and make all of its renditions and its storyboard."""
    video = await make_playable(await published_file(client, resources, film), resources, folder)
    while (await Video.get(id=video.id)).complete_job_id is not None:
        await make_missing(video, resources, folder)
    await storyboards.make(video.id, tools_for(resources, folder))
    return await Video.get(id=video.id)


async def cut(
    video: Video, resources: WebContext, folder: Path, *intervals: tuple[float, float]
) -> Video:
    """Cut a video, and run the jobs that make the cut."""
    keep = [Interval(*each) for each in intervals]
    await cuts.save(video.id, keep, expected=None, hooks=VERSION_HOOKS)
    version = await Version.get(video_id=video.id, retired_at=None, status=VideoStatus.PROCESSING)
    tools = tools_for(resources, folder)
    await passes.publish_version(version.id, tools, may_encode=False, hooks=VERSION_HOOKS)
    while (await Version.get(id=version.id)).complete_job_id is not None:
        await passes.complete_ladder(version.id, tools)
    return await Video.get(id=video.id)


async def pictures(version_id: UUID) -> list[Rendition]:
    """Return the complete renditions of a version's picture, the lowest first."""
    rows = Rendition.filter(version_id=version_id, kind=Kind.VIDEO, state="complete")
    return await rows.order_by("position")


async def save_stream(video: Video, resources: WebContext, folder: Path) -> Path:
    """Write all stored files of a video into a folder, and return its master playlist."""
    root = output_root(video.id)
    for key in await stored(resources.storage, video.id):
        path = folder / key.removeprefix(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(await resources.storage.get(key))
    return folder / str(video.published_attempt) / MASTER_NAME
