"""Reads of videos and their audiences, locks for changes, and addresses.

Reads of nearly every request are SQL by hand, because the ORM takes several times as long as the
query.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Self
from uuid import UUID

from portal.accounts.permissions import Audience, audience_in, audience_of
from portal.database.connection import IS_PRESENT, Row, fetch_rows, lock_video, select_videos
from portal.database.models import Tombstone, Video, VideoStatus
from portal.errors import NotPlayable, VersionConflict, VideoNotFound
from portal.events.records import AUDIENCE_COLUMNS, DETAILS, VideoColumns
from portal.films.versions import SERVED_S
from portal.storage.objects import output_root
from portal.transcoding.packaging.master import MASTER_NAME

RECORDS = f"""
SELECT {", ".join((*VideoColumns.model_fields, *DETAILS, "unlock_id", "metadata_version", "views"))}
FROM videos WHERE id = ANY(%s) AND {IS_PRESENT}
"""  # noqa: S608 - put together from constants
# Columns of the present audience. Events keep no secret of a password, and nobody gets more of them
# by a public page.
AUDIENCE_NOW = ", ".join((*AUDIENCE_COLUMNS, "unlock_id", "has_public_page"))
AUDIENCE = f"SELECT {AUDIENCE_NOW} FROM videos WHERE id = %s AND {IS_PRESENT}"  # noqa: S608
STATES = f"""
SELECT id, status, {AUDIENCE_NOW} FROM videos WHERE id = ANY(%s) AND {IS_PRESENT}
"""  # noqa: S608
# Versions whose output of a rendition is, or is named by, what viewers may load of an attempt.
#
# Viewers load the current version. If it is whole, they can finish a cut of the same film that was
# current a short time ago; otherwise some of it was removed. Of another file, they can finish the
# version that was current last.
#
# Of a ready version, `is_own` are the files of the published attempt and of renditions, of a
# processing one the recorded segments, for the preview. The playlists of a cut, in the folder of
# the attempt `naming`, also name segments of its base.
SERVED = f"""
SELECT {AUDIENCE_NOW}, current.base_id, shown.*
FROM publications JOIN versions current ON current.id = version_id
JOIN LATERAL (
  SELECT CASE version.status
    WHEN 'ready' THEN %s IN (version.published_attempt, own.attempt_number)
    WHEN 'processing' THEN EXISTS (
      SELECT FROM made_segments made
      WHERE made.version_id = version.id AND rendition = %s AND folder = %s
    )
    ELSE false
  END AS is_own,
  CASE WHEN base.id IS NOT NULL AND version.status = 'ready' THEN own.attempt_number END AS naming,
  version.id IS NOT DISTINCT FROM current.base_id AS is_film
  FROM versions version
  LEFT JOIN renditions own
    ON own.version_id = version.id AND own.name = %s AND own.state = 'complete'
  LEFT JOIN renditions base ON base.version_id = version.base_id AND base.name = own.name
    AND base.state = 'complete' AND base.attempt_number = %s
  WHERE version.video_id = publications.id AND (
    version.id IN (current.id, current.base_id)
    OR version.retired_at > now() - make_interval(secs => {SERVED_S}) AND CASE
      WHEN version.storage_key = current.storage_key THEN current.base_id IS NULL
      ELSE version.retired_at = (
        SELECT max(retired_at) FROM versions other
        WHERE other.video_id = publications.id AND other.storage_key = version.storage_key
      )
    END
  )
) shown ON is_own OR naming IS NOT NULL
WHERE publications.id = %s AND {IS_PRESENT}
"""  # noqa: S608


class Delivery(Enum):
    """Source from which players get the files of a video."""

    NETWORK = "plain addresses below `PLAYBACK_BASE_URL`, if it is set; otherwise as `STORAGE`"
    STORAGE = "signed addresses in storage"
    PORTAL = "addresses of the portal, which checks the permission for each file"

    @classmethod
    def of(cls, audience: Audience, base_id: UUID | str | None) -> Self:
        """Return the source for a video with this audience.

        Only the portal serves private videos. Cut videos, which have a `base_id`, are not delivered
        by the network, which may still have the removed parts.
        """
        if audience.is_private:
            return cls.PORTAL
        return cls.NETWORK if base_id is None else cls.STORAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Files of an attempt, in the folder of a rendition, that people in the audience may load.

    All of them if `is_open`, otherwise those that the rendition's media playlists in the folders
    of the `naming_attempts` name. If `is_film`, the video is cut and they are of the whole film,
    which editors of the video may load. `delivery` is that of the video.
    """

    audience: Audience
    delivery: Delivery
    is_open: bool
    is_film: bool
    naming_attempts: tuple[int, ...]


async def get_video(video_id: str) -> Video:
    """Return the video with this id. Raises `VideoNotFound`, also for a malformed id."""
    parsed = parse_video_id(video_id)
    video = await Video.present().get_or_none(id=parsed) if parsed else None
    if video is None:
        raise VideoNotFound
    return video


async def fetch_videos(video_ids: Sequence[UUID]) -> dict[UUID, Video]:
    """Return the existing videos, by id."""
    videos = await select_videos(f"id = ANY({{ids}}) AND {IS_PRESENT}", ids=list(video_ids))
    return {video.id: video for video in videos}


async def fetch_in_order(video_ids: Sequence[UUID]) -> list[Video]:
    """Return the existing videos, in the order of these ids."""
    by_id = await fetch_videos(video_ids)
    return [by_id[video_id] for video_id in video_ids if video_id in by_id]


def parse_video_id(text: str) -> UUID | None:
    """Return the id in a text; None unless it is in its canonical form.

    So there is one address for each video.
    """
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text else None


async def fetch_records(video_ids: Sequence[UUID]) -> dict[UUID, Row]:
    """Return the columns of the existing videos that the API shows, by id."""
    rows = await fetch_rows(RECORDS, list(video_ids))
    return {row["id"]: row for row in rows}


async def fetch_states(video_ids: Sequence[UUID]) -> dict[UUID, Row]:
    """Return the status and the audience's columns of the existing videos, by id."""
    rows = await fetch_rows(STATES, list(video_ids))
    return {row["id"]: row for row in rows}


async def fetch_served(video_id: UUID, attempt: int, rendition: str) -> Served | None:
    """Return the right to load files of a rendition by an attempt; None if there is none.

    The rendition is empty for files outside of its folders.
    """
    values = (attempt, rendition, attempt, rendition, attempt, video_id)
    rows = await fetch_rows(SERVED, *values)
    if not rows:
        return None
    audience = audience_in(rows[0])
    return Served(
        audience=audience,
        delivery=Delivery.of(audience, rows[0]["base_id"]),
        is_open=any(row["is_own"] and not row["is_film"] for row in rows),
        is_film=any(row["is_own"] and row["is_film"] for row in rows),
        naming_attempts=tuple(row["naming"] for row in rows if row["naming"] is not None),
    )


async def locked_video(video_id: UUID) -> Video:
    """Return a video, locked until the end of the transaction. Raises `VideoNotFound`."""
    video = await lock_video(video_id)
    if video is None or video.deleted_at is not None:
        raise VideoNotFound
    return video


async def locked_ready_video(video_id: UUID) -> Video:
    """Return a ready video as `locked_video`. Raises `NotPlayable`, too."""
    video = await locked_video(video_id)
    if video.status is not VideoStatus.READY:
        raise NotPlayable
    return video


def check_version(
    present: str, versions: Collection[str] | None, conflict: type[VersionConflict]
) -> None:
    """Raise a conflict unless the present version is one of those that a change was made from.

    None allows any version. A change to what is recorded already is no conflict: perhaps only the
    answer to it was lost. So compare the values first.
    """
    if versions is not None and present not in versions:
        raise conflict


async def fetch_audience(video_id: UUID) -> Audience | None:
    """Return the audience of a video; None for an unknown video."""
    rows = await fetch_rows(AUDIENCE, video_id)
    return audience_in(rows[0]) if rows else None


def stream_below(base: str, video_id: UUID | str, published_attempt: int | None) -> str:
    """Return the address of a video's stream below a base address of the portal.

    It stays the same when the video is cut or its file is replaced. It is empty without a published
    attempt.
    """
    if published_attempt is None:
        return ""
    return f"{base}/{output_root(video_id)}{MASTER_NAME}"


def film_below(base: str, video_id: UUID, film_attempt: int) -> str:
    """Return the address of the stream of a video's whole film, which only its editors may play."""
    return f"{base}/videos/{video_id}/film/{film_attempt}/{MASTER_NAME}"


def preview_url(base: str, video_id: UUID | str) -> str:
    """Return the address of the master playlist of the preview, below a base address."""
    return f"{base}/{output_root(video_id)}preview/{MASTER_NAME}"


def delivery_of(video: Video) -> Delivery:
    """Return the delivery of a video."""
    return Delivery.of(audience_of(video), video.base_id)


async def was_deleted(video_id: UUID) -> bool:
    """Return whether a video with this id was deleted, as long as there is a record of it."""
    is_hidden = await Video.exists(id=video_id, deleted_at__not_isnull=True)
    return is_hidden or await Tombstone.exists(video_id=video_id)
