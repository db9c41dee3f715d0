"""Episodes of feeds with their files, and the keys of private feeds.

A feed names a video once its file is made. To read a feed requests the missing files of its videos
from `features.downloads`, a few at a time, and keeps the files for 30 days. They count in the
storage quota of the video's owner. While the file of a video with another title or version is made
again, the feed doesn't name the video. A lower quality is named until the best one is made.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

from portal.accounts.people import fetch_principals
from portal.accounts.permissions import Principal
from portal.accounts.tokens import digest, new_secret
from portal.database.account_models import Scope
from portal.database.connection import execute, fetch_rows, transaction
from portal.database.models import Caption, Video
from portal.database.work_models import Download, DownloadState
from portal.errors import (
    DownloadNotFound,
    DownloadsBusy,
    LinkNotValid,
    StorageQuotaExceeded,
    VideoNotFound,
)
from portal.events.log import AuditAction, record_action
from portal.features.discovery.sitemap import shown_description
from portal.features.downloads.service import FileState, SavedFile, list_joined_files, request_file
from portal.films.version_hooks import VersionChange
from portal.queue.jobs import REQUESTER
from portal.transcoding.planning.described_times import DescribedTimes
from portal.uploads.quotas import Quota
from portal.videos.chapters import Chapters, read_all_chapters

# Longest short side of the picture in a feed, in pixels.
MAX_SIDE = 720
# Limit on the files of all feeds that wait for a worker. It leaves most places to people.
MAX_WAITING = 20
# Each row is written at most once a day.
KEEP = """
UPDATE downloads
SET kept_until = now() + interval '30 days', requester = coalesce(owner_id::text, 'feeds')
FROM publications
WHERE publications.id = video_id
  AND (video_id, name) IN (SELECT * FROM unnest(%s::uuid[], %s::text[]))
  AND coalesce(kept_until < now() + interval '29 days', true)
"""
REPLACE_KEY = """
INSERT INTO feed_keys (account_id, digest) VALUES (%s, %s)
ON CONFLICT (account_id) DO UPDATE SET digest = excluded.digest
"""
DELETE_KEY = "DELETE FROM feed_keys WHERE account_id = %s RETURNING account_id"
KEY_OWNER = "SELECT account_id FROM feed_keys WHERE digest = %s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """Video in a feed, with its file, plain description, and languages of its captions."""

    video: Video
    file: SavedFile
    description: str
    languages: Sequence[str]
    has_chapters: bool


async def read_episodes(videos: Sequence[Video], suffix: str, *, quota: Quota) -> list[Episode]:
    """Return those of the videos whose files with this suffix (`m4a` or `mp4`) are ready.

    Missing files are requested as far as the owner's storage quota allows, and none of the files is
    removed within 30 days.
    """
    files = await _usable_files(videos, suffix)
    await _request_missing(videos, files, quota)
    # The best file comes first, so in reverse order it is the last one to be recorded.
    ready = {
        video_id: file
        for video_id, own in files.items()
        for file in reversed(own)
        if file.state is FileState.READY
    }
    kept_files = [
        (video_id, file.name)
        for video_id, own in files.items()
        for file in own
        if file is own[0] or file is ready.get(video_id)
    ]
    await execute(KEEP, [video_id for video_id, _ in kept_files], [name for _, name in kept_files])
    languages = await Caption.filter(
        video_id__in=list(ready), cue_count__gt=0, text__isnull=False
    ).values_list("video_id", "language")
    chapters = await read_all_chapters(list(ready))
    return [
        Episode(
            video=video,
            file=ready[video.id],
            description=shown_description(
                video.title,
                video.description,
                DescribedTimes.of(video.described_times, video.keep, video.duration_s),
            ),
            languages=[language for video_id, language in languages if video_id == video.id],
            has_chapters=bool(chapters.get(video.id, Chapters()).chapters),
        )
        for video in videos
        if video.id in ready
    ]


async def find_enclosure(video: Video, suffix: str) -> SavedFile:
    """Return the file of a video that feeds name with this suffix. Raises `DownloadNotFound`."""
    for file in (await _usable_files([video], suffix))[video.id]:
        if file.state is FileState.READY:
            return file
    raise DownloadNotFound


async def follow_version(change: VersionChange) -> None:
    """Have the files of the former version of a video removed within a day."""
    await Download.filter(video_id=change.video.id).update(kept_until=None)


async def reader_of(key: str) -> Principal:
    """Return the account of a private feed's key, which may only read. Raises `LinkNotValid`."""
    rows = await fetch_rows(KEY_OWNER, digest(key))
    readers = await fetch_principals([row["account_id"] for row in rows])
    for reader in readers.values():
        return replace(reader, scopes=frozenset({Scope.READ}))
    raise LinkNotValid


async def make_key(person: Principal) -> str:
    """Create or replace the key of a person's private feeds, and return its secret."""
    secret = new_secret()
    async with transaction():
        await execute(REPLACE_KEY, person.account_id, digest(secret))
        await record_action(AuditAction.FEED_KEY_MADE, person.account_id, name=person.email)
    return secret


async def revoke_key(person: Principal) -> None:
    """Delete the key of a person's private feeds, if there is one."""
    async with transaction():
        if await fetch_rows(DELETE_KEY, person.account_id):
            await record_action(AuditAction.FEED_KEY_REVOKED, person.account_id, name=person.email)


async def _usable_files(videos: Sequence[Video], suffix: str) -> dict[UUID, list[SavedFile]]:
    """Return the files with this suffix that feeds may name, by video, the best first.

    Of several sounds only the default one is usable.
    """
    files = await list_joined_files(videos)
    limit = 1 if suffix == "m4a" else None
    return {
        video_id: [
            file
            for file in own
            if file.name.endswith(f".{suffix}")
            and min(file.width or 0, file.height or 0) <= MAX_SIDE
        ][:limit]
        for video_id, own in files.items()
    }


async def _request_missing(
    videos: Sequence[Video], files: Mapping[UUID, Sequence[SavedFile]], quota: Quota
) -> None:
    """Request the best file of each video with a complete ladder, unless too many files wait."""
    places = (
        MAX_WAITING
        - await Download.filter(state=DownloadState.WAITING, kept_until__isnull=False).count()
    )
    # All feeds share a requester, so that their jobs don't delay those of any account.
    REQUESTER.set("feeds")
    for video in videos:
        best = next((file for file in files[video.id][:1] if file.state is FileState.ABSENT), None)
        if best and places > 0 and video.complete_job_id is None:
            # The next read of the feed requests a refused file again.
            with suppress(DownloadNotFound, DownloadsBusy, StorageQuotaExceeded, VideoNotFound):
                await request_file(video.id, best.name, account_id=video.owner_id, quota=quota)
                places -= 1
