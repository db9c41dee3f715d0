"""Run commands and other programs until they end."""

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
    """Run a program, killed after `timeout_s`; return its exit code, output and errors."""
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
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


async def portal(environ: dict[str, str], *arguments: str, typed: str = "") -> Ended:
    """Run the `portal` command in a thread of this process, with a separate loop and database.

    That takes a tenth of the time of a process. Fails if the command raises an exception.
    """

    def invoke() -> Result:
        return CliRunner().invoke(main, arguments, input=typed)

    with patch.dict(os.environ, environ), patch("tortoise.context.set_global_context"):
        try:
            ended = await asyncio.to_thread(Context().run, invoke)
        finally:
            # Commands disable the logs of libraries.
            logging.disable(logging.NOTSET)
    if ended.exception and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return Ended(ended.exit_code, ended.stdout, ended.stderr)


async def document(environ: dict[str, str], *arguments: str) -> Any:
    """Return what a command prints with `--json`."""
    ended = await portal(environ, *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def loaded_by(code: str) -> set[str]:
    """Return the modules that are loaded after running this code in a new process."""
    program = f"import sys\n{code}\nprint('', *sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return set(result.stdout.splitlines()[-1].split())
