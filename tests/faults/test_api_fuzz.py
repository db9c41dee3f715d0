"""The running service under generated requests: every answer is one that its document knows.

schemathesis (schemathesis.io) makes them from our own OpenAPI document: valid, nearly valid and
plainly wrong ones for each operation, and sequences along the document's links. `FUZZ_SEED` sets
the seed; `pytest -m soak` sends many times as many.
"""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from command_line import portal as command
from command_line import run_program
from log_checks import complaints
from running_portal import LivePortal, fresh_database, run_portal

from portal.database.states import Scope

HERE = Path(__file__).parent
# What the fuzzed service runs with, beyond what every test's does.
FUZZ_SETTINGS = {
    # The document allows what storage can hold.
    "MAX_SOURCE_BYTES": "0",
    # One client asks it all.
    **{f"RATE_LIMIT_{kind}": "0" for kind in ("CHANGES", "SEARCHES", "SIGN_INS")},
}
SEED = int(os.environ.get("FUZZ_SEED", "20260304"))
TIMEOUT_S = 600
# Processes side by side: what each tests, and how many examples of each operation (or sequences).
RUNS = (
    (("--phases", "fuzzing", "--include-path-regex", "^/api/videos"), 285),
    (("--phases", "fuzzing", "--exclude-path-regex", "^/api/videos"), 285),
    (("--phases", "coverage,stateful"), 220),
)
CASES = 5_000
# What holds of any answer, refusals among them; other checks want valid requests to succeed.
ANSWERS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance"
)
CLOSED_CASES = 500
GENERATED = re.compile(r"^ +([\d,]+) generated", re.MULTILINE)


@pytest.fixture
async def fuzzed(services: dict[str, str], tmp_path: Path) -> AsyncIterator[LivePortal]:
    """A running web process with a database of its own; no worker, so that videos wait."""
    async with (
        fresh_database(services) as environ,
        run_portal({**environ, **FUZZ_SETTINGS}, worker=False, log_dir=tmp_path) as portal,
    ):
        yield portal
    assert complaints(tmp_path / "web.log") == []


async def test_every_answer_to_generated_requests_is_documented(fuzzed: LivePortal) -> None:
    assert await fuzz(fuzzed, seed=SEED, times=1) >= CASES


@pytest.mark.parametrize("name", ["owner", "viewer", "nobody"])
@pytest.mark.slow
async def test_every_answer_of_a_closed_portal_is_documented(fuzzed: LivePortal, name: str) -> None:
    """Whoever asks: what they may not do is refused as the document says."""
    token = ""
    for role in ("owner", "viewer"):
        email = f"{role}@example.org"
        add = ("accounts", "add", email, "--role", role, "--password-stdin")
        assert (await command(fuzzed.environ, *add, typed="four calm green boats\n")).code == 0
        if role == name:
            scopes = [part for it in Scope for part in ("--scope", it.value)]
            made = await command(fuzzed.environ, "tokens", "add", email, "--name", "a", *scopes)
            token = made.out.strip()
    header = ("--header", f"Authorization: Bearer {token}") if token else ()
    with TemporaryDirectory() as folder:
        limits = {"seed": SEED, "folder": folder, "timeout_s": TIMEOUT_S}
        options = (*("--phases", "coverage,fuzzing,stateful"), *header)
        assert await run(fuzzed, options, examples=30, checks=ANSWERS, **limits) >= CLOSED_CASES


async def fuzz(portal: LivePortal, *, seed: int, times: int) -> int:
    """Do all runs at once; answers how many cases they were."""
    with TemporaryDirectory() as folder:
        limits = {"seed": seed, "folder": folder, "timeout_s": TIMEOUT_S * times}
        async with asyncio.TaskGroup() as group:
            runs = [
                group.create_task(run(portal, options, examples=examples * times, **limits))
                for options, examples in RUNS
            ]
    return sum(run.result() for run in runs)


async def run(
    portal: LivePortal,
    options: tuple[str, ...],
    *,
    examples: int,
    seed: int,
    folder: str,
    timeout_s: float,
    checks: str = "all",
) -> int:
    """One process of schemathesis; answers how many cases it sent, or fails with what it found."""
    code, said, errors = await run_program(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "fuzz.toml")),
        *("run", f"{portal.base_url}/api/openapi.json", "--checks", checks, "--no-color"),
        # Knows of DELETE alone; fuzz_hooks.py stands in for it.
        *("--exclude-checks", "ensure_resource_availability"),
        *("--seed", str(seed), "--max-examples", str(examples), *options),
        # Its plugins for other tests' runs are not for it; fuzz_hooks.py is.
        env={
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "PYTHONPATH": str(HERE),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        # It leaves notes on what it found.
        cwd=folder,
        timeout_s=timeout_s,
    )
    sys.stdout.write(f"FUZZ_SEED={seed}\n{said}{errors}")
    assert code == 0, f"FUZZ_SEED={seed}"
    counted = GENERATED.search(said)
    assert counted is not None
    return int(counted[1].replace(",", ""))
