"""What a feature adds to the portal: one value that workers, recovery and the janitor read."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.database.models import Version, Video
from portal.queue.jobs import Job
from portal.storage.bucket import Storage
from portal.transcoding.encoding.assembly import PassOutput

# What a worker does for a job. It gets the worker's tools and the job's arguments by their names,
# ids as UUIDs. It may run any number of times: it reads the state again and skips finished work.
Run = Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChange:
    """A version of a locked video that viewers get from now on, and the one before.

    Each is given as the video with the columns of the version. `former` is None for a video that
    becomes ready. `output` is that of the pass which has just made the version, and `chapters` are
    those of its file; a version that comes back has none.
    """

    video: Video
    former: Video | None
    output: PassOutput | None = None
    chapters: Sequence[Mapping[str, Any]] = ()

    @property
    def is_other_file(self) -> bool:
        """Return whether the version is that of another uploaded file than the one before."""
        return self.former is not None and self.former.storage_key != self.video.storage_key


# What a feature does when viewers get another version, in the transaction of the change.
VersionHook = Callable[[VersionChange], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature: its name, its kinds of jobs with what workers do for them, and its hooks.

    `follow_version` is called when viewers get another version, and `before_removal` before the
    files of a version are removed for good. The janitor calls `sweep`, which removes objects that
    are due at a time and returns their number, and `prune`, which deletes rows. Each worker runs
    `work_beside` until the event is set.
    """

    name: str
    jobs: tuple[tuple[Job, Run], ...] = ()
    follow_version: VersionHook | None = None
    before_removal: Callable[[Version, Storage], Awaitable[None]] | None = None
    sweep: Callable[[Storage, datetime], Awaitable[int]] | None = None
    prune: Callable[[], Awaitable[None]] | None = None
    work_beside: Callable[[asyncio.Event], Coroutine[Any, Any, None]] | None = None
