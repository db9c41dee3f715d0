"""Confine this process, then execute another program. Run by path, never imported.

    python -I confine.py PARENT_PID DEATH_SIGNAL ACCOUNT LIMITS PROGRAM [ARGUMENT ...]

ACCOUNT is `uid,gid`, LIMITS is `nice,memory_bytes,cpu_s,file_bytes` with zero for no limit;
either may be `-`. The alternative, `preexec_fn`, runs Python between fork and exec and can deadlock
in a process with threads. Standard library only.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
# Time between the warning signal and the kill, to report the error.
_CPU_GRACE_S = 5
# Far more than a confined child opens: about 20 outputs at the same time, and a few connections.
_MAX_OPEN_FILES = 1024
_AUTOGROUP = "/proc/self/autogroup"


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def _end_with(parent_pid: int, death_signal: int) -> None:
    """Request `death_signal` for the end of the parent, on Linux. Exit if it isn't `parent_pid`.

    The parent has then ended before the request. A later change of account would clear the request.
    """
    _prctl(_PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent_pid:  # the parent has ended before the request
        sys.exit(1)


def _be_nice(value: int) -> None:
    """Lower the priority of this process and of its scheduling group.

    With autogroups (sched(7)) each session is a scheduling group, and the nice value of a process
    only counts within its group. So the group's nice value is set, too.
    """
    os.nice(value)
    # Importing pathlib would take longer than everything else here.
    with contextlib.suppress(OSError), open(_AUTOGROUP, "w") as autogroup:  # noqa: PTH123
        autogroup.write(str(value))


def _limit(kind: int, value: int, *, grace: int = 0) -> None:
    """Set a limit, which can't exceed the present hard limit."""
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
        grace = 0
    if value:
        resource.setrlimit(kind, (value, value + grace))


def _confine(nice: int, memory_bytes: int, cpu_s: int, file_bytes: int) -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if nice:
        _be_nice(nice)
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold the signed URL
    _limit(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_CPU, cpu_s, grace=_CPU_GRACE_S)
    _limit(resource.RLIMIT_FSIZE, file_bytes)


def _numbers(text: str) -> list[int]:
    return [int(value) for value in text.split(",")]


def main() -> None:
    """Apply the arguments of the command line, and execute the program."""
    parent_pid, death_signal, account, limits, *program = sys.argv[1:]
    if account != "-":
        uid, gid = _numbers(account)
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    _end_with(int(parent_pid), int(death_signal))
    if limits != "-":
        _confine(*_numbers(limits))
    # Python ignores these two signals, and the executed program would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(program[0], program)  # noqa: S606 - argv list, no shell, that is the purpose


if __name__ == "__main__":
    main()
