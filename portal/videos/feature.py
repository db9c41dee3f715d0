"""Features: what one adds to the portal, as a value that web, workers and the janitor read."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from prometheus_client.core import Metric

from portal.accounts.permissions import Principal
from portal.config import Config
from portal.database.models import Version, Video
from portal.errors import VideoNotFound
from portal.films.version_hooks import VersionHook
from portal.queue.jobs import Job
from portal.storage.bucket import Storage
from portal.videos.progress import Progress

# Work of a job. It gets the worker's tools and the job's arguments by their names, ids as UUIDs. It
# may run any number of times: it reads the state again and skips finished work.
Run = Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Work that will create the video `id`: its progress, and the reason why there is no video yet.

    `cancel` ends the work; it raises `KeyAlreadyUsed` if there has just become a video.
    """

    id: UUID
    absence: VideoNotFound
    progress: Progress
    cancel: Callable[[Storage], Awaitable[None]]


# Returns the template values of a panel in the workshop of a video, by name.
ReadPanel = Callable[[Video], Awaitable[Mapping[str, object]]]
# Finds the pending work for an id that a reader may see.
FindPending = Callable[[UUID, Principal], Awaitable[Pending | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature: the name of its folder, its routes, its kinds of jobs with their work, its hooks.

    `routes` names modules of the folder that have a blueprint, and `panels` those with a function
    `read_panel` for a panel of the workshop. Only a web process imports them.
    `follow_version` is called when viewers get another version, and `before_removal` before the
    files of a version are removed for good. The janitor calls `sweep`, which removes objects that
    are due at a time and returns their number, `prune`, which deletes rows, and
    `enforce_settings`, which deletes rows that the settings don't permit any more. A worker runs
    `each_minute` once a minute; it may run twice at once, or late. Each worker runs `work_beside`
    until the event is set. `read_metrics` returns metrics for Prometheus, and `find_pending` finds
    work that will create a video.
    """

    name: str
    routes: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    jobs: tuple[tuple[Job, Run], ...] = ()
    follow_version: VersionHook | None = None
    before_removal: Callable[[Version, Storage], Awaitable[None]] | None = None
    sweep: Callable[[Storage, datetime], Awaitable[int]] | None = None
    prune: Callable[[], Awaitable[None]] | None = None
    enforce_settings: Callable[[Config], Awaitable[None]] | None = None
    each_minute: Callable[[], Awaitable[None]] | None = None
    read_metrics: Callable[[], Awaitable[Sequence[Metric]]] | None = None
    find_pending: FindPending | None = None
    work_beside: Callable[[asyncio.Event], Coroutine[Any, Any, None]] | None = None
