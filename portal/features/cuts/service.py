"""Cuts of a video: the intervals of its film that are kept, as another version of the same file.

Intervals always have times of the whole film, and each saved cut is a version whose base is the
version of the whole film. The former cut plays until the new one is ready. To make a video whole
again, its base becomes the current version, and nothing is encoded. A film can be cut before all
its qualities are made; the cut gets each of them after the film has it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from uuid import UUID, uuid4

from portal import errors
from portal.database.connection import Row, fetch_rows, server_time, transaction
from portal.database.models import Attempt, Version, VideoStatus
from portal.events.log import AuditAction, record_action
from portal.events.records import TranscodeFailure
from portal.films import attempts, renditions
from portal.films.jobs import enqueue_transcode
from portal.films.version_hooks import VersionHook
from portal.films.versions import REVERTIBLE_S, VersionState, pending_file
from portal.transcoding.encoding.loudness import LOUDNESS_COLUMNS
from portal.transcoding.planning.kept import (
    MOST_MOVED_S,
    ROUNDING_S,
    Interval,
    InvalidIntervals,
    Kept,
    check_intervals,
)
from portal.uploads import quotas
from portal.uploads.quotas import NO_QUOTA, Quota
from portal.videos.reading import check_version, locked_ready_video

# The current version, the version of the whole film, and the version that was saved last, which may
# be in progress or failed. The film of a new video may still be that of another video.
READ = """
SELECT live.keep AS live_keep, saved.id AS saved_id, saved.keep, saved.status,
       saved.failure_code, saved.failure_message,
       coalesce(live.base_id, live.id) AS film_id, film.duration_s AS film_s,
       film.published_attempt AS film_attempt, film.has_storyboard,
       (SELECT frame_rate FROM renditions
        WHERE renditions.version_id = film.id AND kind = 'video'
        ORDER BY renditions.position DESC LIMIT 1) AS frame_rate,
       film.complete_job_id IS NULL AND film.storyboard_job_id IS NULL
         AND coalesce(film.status = 'ready', false) AS is_film_complete,
       film.storyboard_job_id IS NULL AS has_all_previews,
       coalesce((SELECT max(percent) FROM attempts WHERE attempts.version_id = saved.id), 0)
         AS percent
FROM publications
JOIN versions live ON live.id = publications.version_id
LEFT JOIN versions film
  ON film.id = coalesce(live.base_id, live.id) AND film.video_id = publications.id
LEFT JOIN versions pending ON pending.video_id = publications.id
  AND pending.base_id = film.id AND pending.retired_at IS NULL AND pending.id <> live.id
JOIN versions saved ON saved.id = coalesce(pending.id, live.id)
WHERE publications.id = %s AND deleted_at IS NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Kept intervals of a video: `keep` was saved last, and viewers get `live_keep`.

    Both are None for the whole film. They differ while a cut is made, and after it has failed.
    `percent` is the progress of the cut, 0 to 100. The film has `film_s` seconds, and its master
    playlist is in the folder of the attempt `film_attempt`; both are None until the film is ready.
    Bounds of intervals at most `same_s` seconds apart are the same, because making a cut moves them
    to frames. `has_all_previews` is False while the film's storyboard and waveform are made, and
    `is_film_complete` also while qualities are. `version` changes with each saved cut, and with the
    file.
    """

    keep: Kept | None
    live_keep: Kept | None
    state: VersionState
    percent: float
    failure: TranscodeFailure | None
    film_id: UUID
    film_s: float | None
    film_attempt: int | None
    same_s: float
    has_film_storyboard: bool
    has_all_previews: bool
    is_film_complete: bool
    version: str


async def read(video_id: UUID) -> Cuts:
    """Return the cuts of a video. Raises `VideoNotFound`."""
    rows = await fetch_rows(READ, video_id)
    if not rows:
        raise errors.VideoNotFound
    return _cuts(rows[0])


async def save(
    video_id: UUID,
    intervals: Sequence[Interval] | None,
    *,
    hooks: Sequence[VersionHook],
    expected: Collection[str] | None,
    quota: Quota = NO_QUOTA,
) -> Cuts:
    """Cut a ready video to these intervals of its film, or show the whole film again (None).

    A cut that is still being made gives way. A repetition of the last saved cut does nothing,
    unless that has failed. A cut that was live a short time ago is live again at once.

    Raises:
        VideoNotFound: the video was deleted.
        NotPlayable: the video is not ready.
        InvalidIntervals: the intervals can't be kept.
        CutsChanged: other cuts are recorded than those of the expected versions.
        ReplacementInProgress: another file is about to replace this one.
        StorageQuotaExceeded: the owner of the video has no room for the cut.
    """
    async with transaction():
        video = await locked_ready_video(video_id)
        present = await read(video_id)
        keep = None
        if intervals is not None:
            try:
                keep = check_intervals(intervals, film_s=present.film_s or 0.0)
            except InvalidIntervals:
                # The intervals may be those of a film that another one has replaced.
                check_version(present.version, expected, errors.CutsChanged)
                raise
        is_repetition = _is_same(keep, present.keep, present.same_s)
        if is_repetition and present.state is not VersionState.FAILED:
            return present
        check_version(present.version, expected, errors.CutsChanged)
        pending = await pending_file(video)
        if pending is not None and pending.status is VideoStatus.PROCESSING:
            raise errors.ReplacementInProgress
        film = await Version.get(id=present.film_id)
        await _stop_pending(film, video.version_id)
        if not _is_same(keep, present.live_keep, present.same_s):
            async with quotas.taking_room(video.owner_id, quota):
                await _make_live(film, keep, hooks, same_s=present.same_s)
        await record_action(AuditAction.VIDEO_CUT, video_id)
        return await read(video_id)


async def insert_cut(film: Version, keep: Kept, *, version_id: UUID, video_id: UUID) -> None:
    """Insert a version that keeps intervals of a film, and queue the job that makes it.

    Call this in a transaction. `video_id` is the video that gets the version. The film, a whole
    version, may be another video's. Room for the cut is not checked here.
    """
    version = Version(
        id=version_id,
        video_id=video_id,
        base_id=film.id,
        keep=[list(interval) for interval in keep.intervals],
        file_name=film.file_name,
        storage_key=film.storage_key,
        size_bytes=film.size_bytes,
        source_etag=film.source_etag,
        probe_answer=film.probe_answer,
        notes=film.notes,
        **{name: getattr(film, name) for name in LOUDNESS_COLUMNS},
        created_at=await server_time(),
    )
    version.transcode_job_id = await enqueue_transcode(version)
    await version.save(force_create=True)


async def _stop_pending(film: Version, current_id: UUID) -> None:
    """Stop the cut of a film that is being made, or dismiss the one that has failed."""
    cuts = Version.filter(video_id=film.video_id, base_id=film.id)
    pending = cuts.filter(retired_at=None).exclude(id=current_id)
    for version in await pending:
        await attempts.stop(version)
        if not await Attempt.exists(version_id=version.id):
            # No worker has stored anything of it.
            await version.delete()


async def _make_live(
    film: Version, keep: Kept | None, hooks: Sequence[VersionHook], *, same_s: float
) -> None:
    """Make the whole film or a former cut current, or queue the job that makes a new cut."""
    existing = film if keep is None else await _former_cut(film, keep, same_s)
    if existing is not None:
        await renditions.restore(existing, hooks)
    elif keep is not None:
        await insert_cut(film, keep, version_id=uuid4(), video_id=film.video_id)


async def _former_cut(film: Version, keep: Kept, same_s: float) -> Version | None:
    """Return a former cut of a film to these intervals whose output still exists."""
    since = await server_time() - timedelta(seconds=REVERTIBLE_S)
    cuts = Version.filter(video_id=film.video_id, base_id=film.id, status=VideoStatus.READY)
    retired = cuts.filter(retired_at__gt=since)
    for version in await retired.order_by("-retired_at"):
        if version.keep and _is_same(keep, Kept.of(version.keep), same_s):
            return version
    return None


def _is_same(keep: Kept | None, other: Kept | None, same_s: float) -> bool:
    """Return whether two cuts keep the same frames; None stands for the whole film."""
    if keep is None or other is None:
        return keep is other
    if len(keep.intervals) != len(other.intervals):
        return False
    return all(
        abs(bound_s - other_s) <= same_s
        for interval, other_interval in zip(keep.intervals, other.intervals, strict=True)
        for bound_s, other_s in zip(interval, other_interval, strict=True)
    )


def _cuts(row: Row) -> Cuts:
    state = VersionState.of(VideoStatus(row["status"]))
    return Cuts(
        keep=_kept(row["keep"]),
        live_keep=_kept(row["live_keep"]),
        state=state,
        percent=100.0 if state is VersionState.LIVE else row["percent"],
        failure=TranscodeFailure.of(row["failure_code"], row["failure_message"]),
        film_id=row["film_id"],
        film_s=row["film_s"],
        film_attempt=row["film_attempt"],
        same_s=min(MOST_MOVED_S, float(1 / Fraction(row["frame_rate"] or 1)) / 2 + ROUNDING_S),
        has_film_storyboard=bool(row["has_storyboard"]),
        has_all_previews=row["has_all_previews"],
        is_film_complete=row["is_film_complete"],
        version=row["saved_id"].hex,
    )


def _kept(keep: Sequence[Sequence[float]] | None) -> Kept | None:
    return None if keep is None else Kept.of(keep)
