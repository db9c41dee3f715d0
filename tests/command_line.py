"""The `portal` command, run as a process of its own."""

import asyncio
import os
import subprocess
import sys
from typing import Any, NamedTuple


async def run_program(*argv: str, timeout_s: float = 120, **options: Any) -> tuple[int, str, str]:
    """Run a program to its end, or end it; returns exit code, output and errors."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        **options,
    )
    try:
        async with asyncio.timeout(timeout_s):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace")


class Ended(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


async def portal(environ: dict[str, str], *arguments: str, typed: str = "") -> Ended:
    """Run the `portal` command to its end, which is never an exception that nobody caught."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "portal", *arguments),
        env={"PATH": os.environ["PATH"], **environ},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(120):
        out, err = await process.communicate(typed.encode())
    assert b"Traceback" not in out + err
    return Ended(process.returncode or 0, out.decode(), err.decode())


def loaded_by(code: str) -> set[str]:
    """The modules that are loaded after this code has run in a process of its own."""
    program = f"import sys\n{code}\nprint('', *sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return set(result.stdout.splitlines()[-1].split())
