"""Posters that editors choose: a frame of the video, or a picture that they upload.

A request is a row. Its job takes the frame from a segment in storage, or crops the picture to the
shape of the video, with the confined ffmpeg. It stores the result under a new name, and then makes
it the video's poster. The web process decodes nothing: only workers have the limits, the work
folder and the recovery for that. The jobs are side jobs, which don't wait for transcodes.
"""

import logging
from bisect import bisect_right
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from portal.database.connection import NOW, execute, fetch_rows, lock_video, transaction
from portal.database.models import (
    Attempt,
    PosterRequest,
    PosterState,
    Publication,
    Rendition,
    RenditionState,
    Version,
    Video,
)
from portal.errors import StorageUnavailable
from portal.events.log import AuditAction, EventType, record_action, record_outcome
from portal.films.outputs import open_rendition
from portal.films.removal import remove_again
from portal.films.version_hooks import VersionChange
from portal.queue.jobs import SIDE_QUEUE, Job, Required
from portal.queue.tools import Tools
from portal.queue.tries import TriesExhausted, one_try
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_root
from portal.transcoding.encoding.pictures import extract_frame, fit_picture, picture_kind
from portal.transcoding.errors import PictureFault, PictureRejected, TranscodeFailed
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.master import Kind
from portal.transcoding.planning.kept import Kept
from portal.videos.poster import lacks_poster_frame
from portal.videos.reading import locked_ready_video

logger = logging.getLogger(__name__)

# Folder of requested posters, which outlast the version that was current at the request.
FOLDER = "posters/"
POSTER = Job(
    name="poster",
    queue=SIDE_QUEUE,
    # The lock of passes would be held for hours while a long ladder is completed.
    lock="poster:{video_id}",
    required=Required(
        table="poster_requests",
        condition="state IN ('waiting', 'working')",
        arguments={"video_id": "video_id", "number": "number"},
    ),
)
# Permanent errors of a request.
FAULTS = (TranscodeFailed, PictureRejected, ObjectMissing, hls.PlaylistError)
# Posters are not larger than this.
ENOUGH_PIXELS_ACROSS = 1080
# A picture of some megabytes waits in the database, not in storage, so that it is recorded and
# removed together with its request.
ADD_PICTURE = "INSERT INTO poster_pictures (video_id, content) VALUES (%s, %s)"
PICTURE = "SELECT content FROM poster_pictures WHERE video_id = %s"
DROP_PICTURE = "DELETE FROM poster_pictures WHERE video_id = %s"


async def follow_version(change: VersionChange) -> None:
    """Give a version the video's chosen poster, unless its frame is cut from the film.

    A new file doesn't get a frame that viewers of the former one did not see.
    """
    video = change.video
    chosen = Publication.filter(id=video.id, poster_path__not_isnull=True)
    if change.former and change.is_other_file and lacks_poster_frame(change.former):
        await chosen.update(poster_path=None, poster_time_s=None)
    elif not lacks_poster_frame(video) and await chosen.exists():
        await Version.filter(id=video.version_id).update(has_poster=True)


def requested_path(number: int) -> str:
    """Return the path of a requested poster below the folder of its video."""
    return f"{FOLDER}poster-{number}.jpg"


async def request_poster(
    video_id: UUID, *, time_s: float | None = None, picture: bytes | None = None
) -> PosterRequest:
    """Request the frame at this time, or an uploaded picture, as the poster.

    The request supersedes one that waits. Raises `VideoNotFound`, `NotPlayable` for a video that is
    not ready, or `PictureRejected` if the first bytes are not those of JPEG, PNG or WebP.
    """
    if picture is not None and picture_kind(picture) is None:
        raise PictureRejected(PictureFault.UNREADABLE)
    async with transaction():
        video = await locked_ready_video(video_id)
        earlier = await PosterRequest.get_or_none(video_id=video_id)
        request = earlier or PosterRequest(video_id=video_id, number=0)
        request.number += 1
        request.tries = 0
        request.error_code = None
        request.time_s = None if time_s is None else _whole_time_s(video, time_s)
        request.state = PosterState.WAITING
        request.job_id = await POSTER.enqueue(video_id=video_id, number=request.number)
        await request.save()
        await execute(DROP_PICTURE, video_id)
        if picture is not None:
            await execute(ADD_PICTURE, video_id, picture)
        await record_action(AuditAction.POSTER_REPLACED, video_id)
    return request


def _whole_time_s(video: Video, time_s: float) -> float:
    """Return the time in the whole film of a time of the film that viewers get."""
    at_s = min(max(time_s, 0.0), video.duration_s or 0.0)
    return at_s if video.keep is None else Kept.of(video.keep).whole_time_s(at_s)


async def make_poster(video_id: UUID, number: int, tools: Tools) -> None:
    """Carry out a request. May run any number of times; a superseded one makes no poster."""
    requests = PosterRequest.filter(video_id=video_id, number=number)
    pending = requests.exclude(state=PosterState.DONE)
    storage = tools.storage
    try:
        async with one_try(POSTER, pending, state=PosterState.WORKING) as request:
            video = await Video.get_or_none(id=video_id)
            if video is None:
                return
            if request is not None:
                picture = await _make_picture(video, request, storage, tools.work_dir)
                key = output_root(video_id) + requested_path(number)
                await storage.put(key, picture, content_type="image/jpeg")
                await _set_poster(video, number, key, storage)
            await _remove_unused_posters(video_id, storage)
    except (*FAULTS, TriesExhausted) as exc:
        logger.warning("No poster was made: %s", exc, extra={"action": "poster_failed"})
        code = getattr(exc, "code", "rendition_unreadable")
        async with transaction():
            if await requests.update(state=PosterState.FAILED, error_code=code):
                await execute(DROP_PICTURE, video_id)
    except TimeoutError as exc:
        raise StorageUnavailable from exc


async def _make_picture(
    video: Video, request: PosterRequest, storage: Storage, work_dir: Path
) -> bytes:
    """Return the requested poster as JPEG."""
    if request.time_s is not None:
        return await _extract_frame(video, request.time_s, storage, work_dir)
    rows = await fetch_rows(PICTURE, video.id)
    shape = (video.width or 0, video.height or 0)
    with TemporaryDirectory(dir=work_dir) as own:
        # Only a later request removes the picture, and this one's result is not used then.
        picture = bytes(rows[0]["content"]) if rows else b""
        return await fit_picture(picture, shape=shape, work_dir=Path(own))


async def _extract_frame(video: Video, time_s: float, storage: Storage, work_dir: Path) -> bytes:
    """Return the frame at a time of the whole film, or the next one that is not cut."""
    if video.keep is not None:
        time_s = Kept.of(video.keep).next_cut_time_s(time_s)
    best = await open_rendition(await _poster_rendition(video), video.id, storage)
    playlist = best.playlist
    # The segment that plays at this time, or the last one.
    place = min(bisect_right(playlist.starts_s, time_s, lo=1), len(playlist.segments)) - 1
    init = await best.read_init()
    segment = await best.read(playlist.segments[place].uri)
    with TemporaryDirectory(dir=work_dir) as own:
        at_s = time_s - playlist.starts_s[place]
        return await extract_frame(init, segment, at_s=at_s, work_dir=Path(own))


async def _poster_rendition(video: Video) -> Rendition:
    """Return the smallest complete rendition that is large enough, or the largest one."""
    rows = await Rendition.filter(
        version_id=video.version_id, kind=Kind.VIDEO, state=RenditionState.COMPLETE
    )
    if not rows:
        raise ObjectMissing(str(video.id))
    by_size = {min(row.width or 0, row.height or 0): row for row in rows}
    large_sizes = [size for size in by_size if size >= ENOUGH_PIXELS_ACROSS]
    return by_size[min(large_sizes) if large_sizes else max(by_size)]


async def _set_poster(former: Video, number: int, key: str, storage: Storage) -> None:
    """Make the stored picture the video's poster, unless the request is superseded."""
    async with transaction():
        video = await lock_video(former.id)
        requests = PosterRequest.filter(video_id=former.id, number=number)
        request = await requests.first()
        is_current = video is not None and bool(await requests.update(state=PosterState.DONE))
        if request is not None and is_current:
            await Publication.filter(id=former.id).update(
                poster_version=number,
                poster_path=requested_path(number),
                poster_time_s=request.time_s,
                changed_at=NOW,
            )
            await Version.filter(id=former.version_id).update(has_poster=True)
            await record_outcome(EventType.UPDATED, former.id)
            await execute(DROP_PICTURE, former.id)
            logger.info("Poster replaced", extra={"action": "poster_replaced"})
    if video is None:
        await remove_again(former.id, former.storage_key)
    elif not is_current:
        await storage.delete(key)


async def move_from_attempt(version: Version, storage: Storage) -> None:
    """Move a video's chosen poster from an attempt's folder to the folder of posters.

    Portals before 0.6 stored posters that an editor chose in the folder of an attempt, which is
    deleted with the attempt's version. Do nothing if the poster is elsewhere. The record follows.
    """
    publication = await Publication.get_or_none(id=version.video_id)
    path = (publication and publication.poster_path) or ""
    folder, _, name = path.partition("/")
    if not folder.isdecimal() or not await Attempt.exists(version_id=version.id, number=folder):
        return
    root = output_root(version.video_id)
    with suppress(ObjectMissing):
        await storage.copy(root + path, root + FOLDER + name)
    rows = Publication.filter(id=version.video_id, poster_path=path)
    await rows.update(poster_path=FOLDER + name)


async def _remove_unused_posters(video_id: UUID, storage: Storage) -> None:
    """Remove replaced posters, but not the result of a later request."""
    video = await Video.get_or_none(id=video_id)
    if video is None:
        return
    request = await PosterRequest.get_or_none(video_id=video_id)
    newest = request.number if request else video.poster_version
    # A cut may hide the poster until it is taken back.
    used = {
        f"{output_root(video_id)}{path}" for path in (video.poster_path, requested_path(newest))
    }
    for key in await storage.list_some(output_root(video_id) + FOLDER):
        if key not in used:
            await storage.delete(key)
