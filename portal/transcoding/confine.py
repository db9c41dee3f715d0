"""Confine this process, then become another program. Run by path, never imported.

    python -I confine.py PARENT_PID NICE MEMORY_BYTES CPU_S PROGRAM [ARGUMENT ...]

A program of its own because the alternative, `preexec_fn`, runs Python between fork and exec and
can deadlock in a process that has threads. Zero means no limit. Standard library only.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _die_with(parent_pid: int) -> None:
    """Ask Linux to kill us when the parent ends, however it ends."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent_pid:  # it ended before we asked
        sys.exit(1)


def _limit(kind: int, value: int) -> None:
    if value:
        resource.setrlimit(kind, (value, value))


def main() -> None:
    """Apply the limits given on the command line and exec the program that follows them."""
    parent_pid, nice, memory_bytes, cpu_s = (int(value) for value in sys.argv[1:5])
    program = sys.argv[5:]
    _die_with(parent_pid)
    os.nice(nice)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold the signed URL
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_CPU, cpu_s)
    os.execv(program[0], program)  # noqa: S606 - argv list, no shell, that is the purpose


if __name__ == "__main__":
    main()
