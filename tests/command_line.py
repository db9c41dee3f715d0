"""Commands and other programs, run to their end."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from contextvars import Context
from typing import Any, NamedTuple
from unittest.mock import patch

from click.testing import CliRunner, Result

from portal.cli.main import main


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
    """Run the `portal` command in this process, in a thread with a loop and database of its own.

    That takes a tenth of the time of a process. No command ends by an exception of ours.
    """

    def invoke() -> Result:
        return CliRunner().invoke(main, arguments, input=typed)

    with patch.dict(os.environ, environ), patch("tortoise.context.set_global_context"):
        try:
            ended = await asyncio.to_thread(Context().run, invoke)
        finally:
            # Commands keep back what libraries log.
            logging.disable(logging.NOTSET)
    if ended.exception and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return Ended(ended.exit_code, ended.stdout, ended.stderr)


async def document(environ: dict[str, str], *arguments: str) -> Any:
    """What a command prints for programs."""
    ended = await portal(environ, *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def loaded_by(code: str) -> set[str]:
    """The modules that are loaded after this code has run in a process of its own."""
    program = f"import sys\n{code}\nprint('', *sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return set(result.stdout.splitlines()[-1].split())
