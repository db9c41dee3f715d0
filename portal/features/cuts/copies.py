"""New videos that are cuts of an existing video: they share its uploaded file.

The first version of the new video is the cut, so viewers never get removed parts. Its base is the
whole film of the existing video until the job of the cut has copied that
(`films.copied_films`). From then on deleting either video keeps the other whole.
"""

from collections.abc import Collection, Sequence
from uuid import UUID, uuid4

from portal.database.connection import server_time, transaction
from portal.database.models import Publication, Version, Video
from portal.database.search import search_columns
from portal.errors import CutsChanged, FilmIncomplete
from portal.events.log import AuditAction, record_action
from portal.features.captions.versions import copy_texts
from portal.features.cuts import service as cuts
from portal.films.attempts import FILM_DELETED, FILM_DELETED_MESSAGE, fail_version
from portal.locale.messages import Message
from portal.transcoding.planning.kept import Interval, InvalidIntervals, check_intervals
from portal.uploads import quotas
from portal.uploads.quotas import Quota
from portal.videos.publishing import submit_if_required
from portal.videos.reading import check_version, locked_ready_video

# Details and audience that the new video has from the existing one.
KEPT_DETAILS = (
    "description",
    "described_times",
    "category_ids",
    "tags",
    "visibility",
    "signed_in_only",
    "has_public_page",
    "admitted_ids",
    "editor_ids",
    "has_even_loudness",
)


async def create(
    video_id: UUID,
    intervals: Sequence[Interval],
    *,
    title: str,
    expected: Collection[str] | None,
    owner_id: UUID | None,
    quota: Quota,
) -> Video:
    """Create a video of an account that keeps these intervals of another video's whole film.

    Raises:
        VideoNotFound: the video was deleted.
        NotPlayable: the video is not ready.
        InvalidIntervals: the intervals can't be kept, or keep the whole film.
        CutsChanged: other cuts, or those of another file, are recorded than the expected versions.
        FilmIncomplete: qualities or previews of the whole film are still being made.
        VideoQuotaExceeded: the account may publish it later.
        StorageQuotaExceeded: the account has no room for the copy.
    """
    async with transaction():
        video = await locked_ready_video(video_id)
        present = await cuts.read(video_id)
        check_version(present.version, expected, CutsChanged)
        if not present.is_film_complete:
            raise FilmIncomplete
        keep = check_intervals(intervals, film_s=present.film_s or 0.0)
        if keep is None:
            raise InvalidIntervals(Message("Leave a part of the film out."))
        await quotas.require_video(owner_id, quota)
        film = await Version.get(id=present.film_id)
        async with quotas.taking_room(owner_id, quota):
            copy_id = await _insert_publication(video, title, owner_id)
            await cuts.insert_cut(film, keep, version_id=copy_id, video_id=copy_id)
        copy = await Video.get(id=copy_id)
        await copy_texts(video_id, copy)
        await record_action(AuditAction.VIDEO_PUBLISHED, copy_id)
        await submit_if_required(copy_id)
        return copy


async def _insert_publication(video: Video, title: str, owner_id: UUID | None) -> UUID:
    copy_id = uuid4()
    now = await server_time()
    derived = search_columns(title=title, description=video.description, tags=video.tags)
    columns = {name: getattr(video, name) for name in KEPT_DETAILS}
    await Publication.create(
        **{**columns, **derived},
        id=copy_id,
        version_id=copy_id,
        title=title,
        embed_origins=video.embed_origins,
        owner_id=owner_id,
        created_at=now,
        updated_at=now,
    )
    return copy_id


async def fail_copies(films: Collection[Version]) -> None:
    """Fail the new videos whose film is not copied yet from one of these versions of a video.

    The versions can then be deleted. Belongs to a transaction that has locked their video.
    """
    video_ids = {film.video_id for film in films}
    copies = Version.filter(base_id__in=[film.id for film in films])
    for copy in await copies.exclude(video_id__in=video_ids).order_by("created_at"):
        await fail_version(copy.id, code=FILM_DELETED, message=FILM_DELETED_MESSAGE)
        # A copy that had failed for another reason can't be made any more, either.
        await Version.filter(id=copy.id).update(
            base_id=None, failure_code=FILM_DELETED, failure_message=FILM_DELETED_MESSAGE
        )
