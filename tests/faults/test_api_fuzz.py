"""The running service under generated requests: every answer is one that its document knows.

schemathesis (schemathesis.io) makes them from our own OpenAPI document: valid, nearly valid and
plainly wrong ones for each operation, and sequences along the document's links. `FUZZ_SEED` sets
the seed.
"""

import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from command_line import portal as command
from command_line import run_program
from running_portal import LivePortal, fresh_database, run_portal
from speech import Speech

from portal.database.account_models import Scope

HERE = Path(__file__).parent
# What the fuzzed service runs with, beyond what every test's does.
FUZZ_SETTINGS = {
    # The document allows what storage can hold.
    "MAX_SOURCE_BYTES": "0",
    # One client asks it all.
    **{f"RATE_LIMIT_{kind}": "0" for kind in ("CHANGES", "SEARCHES", "SIGN_INS")},
}
SEED = os.environ.get("FUZZ_SEED", "20260304")
TIMEOUT_S = 600
# What holds of any answer, refusals among them; other checks want valid requests to succeed.
ANSWERS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance"
)
# What says in a log that the program itself went wrong.
COMPLAINT = re.compile(r"ERROR|CRITICAL|Traceback|Exception|Task .* never retrieved", re.IGNORECASE)
GENERATED = re.compile(r"^ +([\d,]+) generated", re.MULTILINE)


@pytest.fixture
async def fuzzed(
    services: dict[str, str], speech: Speech, tmp_path: Path
) -> AsyncIterator[LivePortal]:
    """A running web process with a database of its own; no worker, so that videos wait."""
    settings = {**FUZZ_SETTINGS, "CAPTIONS_MODEL": str(speech.model)}
    async with (
        fresh_database(services) as environ,
        run_portal({**environ, **settings}, worker=False, log_dir=tmp_path) as portal,
    ):
        yield portal
    lines = (tmp_path / "web.log").read_text(errors="replace").splitlines()
    assert [line for line in lines if COMPLAINT.search(line)] == []


@pytest.mark.parametrize(
    ("max_examples", "min_cases"), [(40, 1_500), pytest.param(100, 2_000, marks=pytest.mark.soak)]
)
async def test_every_answer_to_generated_requests_is_documented(
    fuzzed: LivePortal, tmp_path: Path, max_examples: int, min_cases: int
) -> None:
    options = ("--max-examples", str(max_examples), "--checks", "all")
    assert await fuzz(fuzzed, *options, folder=tmp_path) >= min_cases


async def test_every_answer_of_a_closed_portal_is_documented(
    fuzzed: LivePortal, tmp_path: Path
) -> None:
    """A viewer with every scope: what they may not do is refused as the document says."""
    for role in ("owner", "viewer"):
        add = ("accounts", "add", f"{role}@example.org", "--role", role, "--password-stdin")
        assert (await command(fuzzed.environ, *add, typed="four calm green boats\n")).code == 0
    scopes = [part for it in Scope for part in ("--scope", it.value)]
    made = await command(
        fuzzed.environ, *("tokens", "add", "viewer@example.org", "--name", "a"), *scopes
    )
    header = ("--header", f"Authorization: Bearer {made.out.strip()}")
    options = ("--max-examples", "20", "--checks", ANSWERS, *header)
    assert await fuzz(fuzzed, *options, folder=tmp_path) >= 500


async def fuzz(portal: LivePortal, *options: str, folder: Path) -> int:
    """Run schemathesis; answers how many cases it sent, or fails with what it found."""
    code, said, errors = await run_program(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "fuzz.toml")),
        *("run", f"{portal.base_url}/api/openapi.json", "--no-color", "--seed", SEED),
        *("--phases", "coverage,fuzzing,stateful", *options),
        # Knows of DELETE alone.
        *("--exclude-checks", "ensure_resource_availability"),
        env={
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "PYTHONPATH": str(HERE),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=str(folder),
        timeout_s=TIMEOUT_S,
    )
    sys.stdout.write(f"FUZZ_SEED={SEED}\n{said}{errors}")
    assert code == 0, f"FUZZ_SEED={SEED}"
    counted = GENERATED.search(said)
    assert counted is not None
    return int(counted[1].replace(",", ""))
