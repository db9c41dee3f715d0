"""The `portal` command, run as a process of its own."""

import asyncio
import os
import sys


async def portal(environ: dict[str, str], *arguments: str, typed: str = "") -> tuple[int, str, str]:
    """Run the `portal` command to its end; returns exit code, output and errors."""
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
    return process.returncode or 0, out.decode(), err.decode()
