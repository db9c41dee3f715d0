"""What a feature adds to the portal: one value that workers, recovery and the janitor read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from portal.queue.jobs import Job

# What a worker does for a job. It gets the worker's tools and the job's arguments by their names,
# ids as UUIDs. It may run any number of times: it reads the state again and skips finished work.
Run = Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature: its name, and its kinds of jobs with what workers do for them."""

    name: str
    jobs: tuple[tuple[Job, Run], ...] = ()
