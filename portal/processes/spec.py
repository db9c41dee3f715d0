"""What a supervised child is, and how it is restarted."""

import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from portal.processes.child import SystemUser
from portal.processes.output import Output
from portal.retry import Backoff


class ChildError(Exception):
    """A child could not be started, or failed for good; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """How to start a child, see that it works, and stop it.

    `stop_signals` each come with the seconds that the child is given; SIGKILL follows by itself.
    Nothing works without a child that `must_start`.
    """

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    output: Output
    ready: Callable[[], Awaitable[bool]] | None = None
    ready_timeout_s: float = 30.0
    must_start: bool = False
    stop_signals: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 5.0),)
    stop_now_signal: signal.Signals = signal.SIGKILL
    death_signal: signal.Signals = signal.SIGTERM
    user: SystemUser | None = None
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class RestartPolicy(Backoff):
    """Pauses between restarts. Failures are forgotten once a child has run for `settled_s`.

    A child that must start is given up after `first_tries` failures before it was ever ready.
    """

    settled_s: float = 60.0
    first_tries: int = 5
