"""Clients and settings of a worker that its jobs use."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from portal.config import Config
from portal.storage.bucket import Storage
from portal.transcoding.probing.probe import SourceLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Clients and settings of the worker named `worker`, and the job that uses them.

    `busy` is set while the worker encodes. `job_id` and `priority` are those of the job, or 0.
    """

    worker: str
    config: Config
    storage: Storage
    work_dir: Path
    busy: asyncio.Event = field(default_factory=asyncio.Event)
    job_id: int = 0
    priority: int = 0

    @property
    def limits(self) -> SourceLimits:
        """Return the limits of sources."""
        config = self.config
        return SourceLimits(
            max_pixels=config.max_source_pixels,
            max_duration_s=config.max_source_duration_s,
            max_size_bytes=config.max_source_bytes,
            max_transcode_s=config.max_transcode_s,
        )
