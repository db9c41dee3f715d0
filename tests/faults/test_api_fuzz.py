"""Responses to generated requests match the OpenAPI document.

schemathesis (schemathesis.io) generates valid, nearly valid and invalid requests for each operation
of the portal's OpenAPI document, and sequences along its links. `FUZZ_SEED` sets the seed.
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
# Settings of the fuzzed service.
FUZZ_SETTINGS = {
    # The document allows all sizes that storage can hold.
    "MAX_SOURCE_BYTES": "0",
    # All requests come from one client.
    **{f"RATE_LIMIT_{kind}": "0" for kind in ("CHANGES", "SEARCHES", "SIGN_INS", "REPORTS")},
}
SEED = os.environ.get("FUZZ_SEED", "20260304")
TIMEOUT_S = 600
# Checks of any response, refusals included; the other checks need valid requests to succeed.
ANSWERS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance"
)
# Signs of a bug in a log.
COMPLAINT = re.compile(r"ERROR|CRITICAL|Traceback|Exception|Task .* never retrieved", re.IGNORECASE)
GENERATED = re.compile(r"^ +([\d,]+) generated", re.MULTILINE)


@pytest.fixture
async def fuzzed(
    services: dict[str, str], speech: Speech, tmp_path: Path
) -> AsyncIterator[LivePortal]:
    """Web process with a separate database, without a worker, so that videos wait."""
    settings = {**FUZZ_SETTINGS, "CAPTIONS_MODEL": str(speech.model)}
    async with (
        fresh_database(services) as environ,
        run_portal({**environ, **settings}, worker=False, log_dir=tmp_path) as portal,
    ):
        yield portal
    lines = (tmp_path / "web.log").read_text(errors="replace").splitlines()
    assert [line for line in lines if COMPLAINT.search(line)] == []


@pytest.mark.parametrize(
    ("max_examples", "min_cases"), [(8, 1_000), pytest.param(100, 2_000, marks=pytest.mark.soak)]
)
async def test_every_response_to_generated_requests_is_documented(
    fuzzed: LivePortal, tmp_path: Path, max_examples: int, min_cases: int
) -> None:
    options = ("--max-examples", str(max_examples), "--checks", "all")
    assert await fuzz(fuzzed, *options, folder=tmp_path) >= min_cases


@pytest.mark.soak
async def test_every_response_of_a_closed_portal_is_documented(
    fuzzed: LivePortal, tmp_path: Path
) -> None:
    """A viewer with all scopes is refused as documented."""
    for role in ("owner", "viewer"):
        add = ("accounts", "add", f"{role}@example.org", "--role", role, "--password-stdin")
        assert (await command(fuzzed.environ, *add, typed="four calm green boats\n")).code == 0
    scopes = [part for scope in Scope for part in ("--scope", scope.value)]
    token = await command(
        fuzzed.environ, *("tokens", "add", "viewer@example.org", "--name", "a"), *scopes
    )
    header = ("--header", f"Authorization: Bearer {token.out.strip()}")
    options = ("--max-examples", "4", "--checks", ANSWERS, *header)
    assert await fuzz(fuzzed, *options, folder=tmp_path) >= 500


async def fuzz(portal: LivePortal, *options: str, folder: Path) -> int:
    """Run schemathesis, which must find nothing, and return the number of cases."""
    code, output, errors = await run_program(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "fuzz.toml")),
        *("run", f"{portal.base_url}/api/openapi.json", "--no-color", "--seed", SEED),
        *("--phases", "coverage,fuzzing,stateful", *options),
        # This check knows no other deletion than DELETE.
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
    sys.stdout.write(f"FUZZ_SEED={SEED}\n{output}{errors}")
    assert code == 0, f"FUZZ_SEED={SEED}"
    counted = GENERATED.search(output)
    assert counted is not None
    return int(counted[1].replace(",", ""))
