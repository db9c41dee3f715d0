"""What a worker carries out passes with."""

from dataclasses import dataclass, field
from pathlib import Path

from portal.processing.pace import Pace
from portal.queue.app import Queue
from portal.storage.bucket import Storage
from portal.transcoding.probing.probe import SourceLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a worker carries out passes with; `limits` are those of sources.

    `pace` is what the worker's passes have taken so far.
    """

    worker: str
    storage: Storage
    queue: Queue
    limits: SourceLimits
    work_dir: Path
    pace: Pace = field(default_factory=Pace)
