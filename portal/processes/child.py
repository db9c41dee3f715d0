"""Start and stop the child processes that touch untrusted media.

Every child gets its own process group, a minimal environment (no secret of the portal's is
inherited), limits, and dies with the worker. Linux ties that last point to the *thread* that
started the child, so call this from a loop that runs in a thread as long-lived as the process.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_CONFINE = Path(__file__).with_name("confine.py")
_TERMINATE_GRACE_S = 3.0
_DRAIN_LIMIT_S = 5.0
# Where TLS trust is configured is not a secret, and https sources need it.
_INHERITED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR")


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a child may use; zero means unlimited. `nice` 19 is the lowest priority.

    `memory_bytes` is of address space, `cpu_s` of all threads together, `file_bytes` of any one
    file it writes.
    """

    nice: int = 19
    memory_bytes: int = 0
    cpu_s: int = 0
    file_bytes: int = 0


async def spawn(
    argv: Sequence[str],
    *,
    limits: Limits,
    stdin: bool = False,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Process:
    """Start `argv` confined, with stdout and stderr piped. The caller must `stop` it.

    `environ` is added to the minimal environment.
    """
    confined = (
        *(sys.executable, "-I", str(_CONFINE)),
        *(str(os.getpid()), str(limits.nice)),
        *(str(limits.memory_bytes), str(limits.cpu_s), str(limits.file_bytes)),
        *argv,
    )
    return await asyncio.create_subprocess_exec(
        *confined,
        stdin=PIPE if stdin else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=_environment() | dict(environ or {}),
        cwd=cwd,
        start_new_session=True,  # its own process group, which `send` signals
    )


async def stop(process: Process, *, grace_s: float = _TERMINATE_GRACE_S) -> None:
    """Terminate, wait, kill. Returns once the process is gone; harmless when it already is."""
    try:
        if process.returncode is None:
            send(process, signal.SIGTERM)
            send(process, signal.SIGCONT)  # a stopped process can't act on SIGTERM
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await process.wait()
    finally:
        if process.returncode is None:
            send(process, signal.SIGKILL)
            await process.wait()
    await _drain(process)


def send(process: Process, signal_number: signal.Signals) -> None:
    """Signal the whole process group, if it is still there."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that brought a TaskGroup down, for callers who expect it bare."""
    error = group.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error


async def _drain(process: Process) -> None:
    """Read what is left, so that the pipes close now and not in a garbage collection."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_LIMIT_S):
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    await stream.read()


def _environment() -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", **inherited}
