"""Clients that generators create from the OpenAPI document compile, and work with a portal."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from build_frontend import find_node
from command_line import portal as command
from command_line import run_program
from front_end import CLIENT_GENERATOR, install_tools
from running_portal import call, fresh_portal, until
from webhook_receiver import receiving

from portal.database.account_models import Scope

pytestmark = pytest.mark.slow

DRIVERS = Path(__file__).parent / "generated"
SETTINGS = {"OUTGOING_NETWORKS": "127.0.0.0/8", "OUTGOING_ALLOW_HTTP": "on"}
OWNER = "olga@example.org"
# Operations with a content type of players, which the generator doesn't know.
OF_PLAYERS = {"report_playback"}


class Closed(NamedTuple):
    """Running portal with an account, and a token with all scopes."""

    url: str
    token: str


@pytest.fixture(scope="module")
async def closed(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Closed]:
    settings = {**SETTINGS, "WORK_DIR": str(tmp_path_factory.mktemp("work"))}
    async with fresh_portal(services, worker=True, **settings) as portal:
        add = ("accounts", "add", OWNER, "--role", "owner", "--password-stdin")
        assert (await command(portal.environ, *add, typed="four calm green boats\n")).code == 0
        scopes = [word for scope in Scope for word in ("--scope", scope.value)]
        added = await command(portal.environ, "tokens", "add", OWNER, "--name", "a", *scopes)
        yield Closed(portal.base_url, added.out.strip())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a folder for a client, with its driver."""
    shutil.copytree(DRIVERS, tmp_path, dirs_exist_ok=True)
    return tmp_path


async def run(*argv: str, folder: Path) -> str:
    """Run a tool that must succeed; return its output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    code, out, err = await run_program(
        *argv, timeout_s=600, cwd=folder, env={**os.environ, "PATH": path}
    )
    assert code == 0, out + err
    return out


async def operation_ids(portal_url: str) -> set[str]:
    paths = (await call("GET", f"{portal_url}/api/openapi.json"))["paths"]
    return {operation["operationId"] for path in paths.values() for operation in path.values()}


async def drive(*argv: str, closed: Closed, folder: Path) -> None:
    """Run a driver, which creates a webhook and prints the id of its video."""
    async with receiving() as receiver:
        video_id = await run(*argv, *closed, receiver.url, folder=folder)
        created, deleted = (
            (event, video_id.strip()) for event in ("video.created", "video.deleted")
        )

        def has_received_events() -> bool:
            events = {(event["type"], event["data"]["id"]) for event in receiver.events}
            # A creation that is sent after the deletion is left out.
            return deleted in events and events <= {created, deleted}

        await until(has_received_events, timeout_s=20)


async def test_python_client_passes_mypy_and_drives_the_portal(
    closed: Closed, folder: Path
) -> None:
    source = ("--url", f"{closed.url}/api/openapi.json")
    generator = (sys.executable, "-m", "openapi_python_client", "generate")
    await run(*generator, *source, "--meta", "none", "--output-path", "portal_api", folder=folder)
    # The generator only warns about operations that it leaves out.
    generated = {file.stem for file in (folder / "portal_api" / "api").glob("*/*.py")}
    assert await operation_ids(closed.url) <= generated | OF_PLAYERS
    # The generator's own library code does not pass.
    checked = ("driver.py", "portal_api/api", "portal_api/models")
    mypy = (sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent")
    await run(*mypy, *checked, folder=folder)
    await drive(sys.executable, "driver.py", closed=closed, folder=folder)


async def test_typescript_client_passes_tsc_and_drives_the_portal(
    closed: Closed, folder: Path
) -> None:
    packages = await asyncio.to_thread(install_tools)
    node, _ = find_node()
    (folder / "node_modules").symlink_to(packages)
    generator = (node, str(CLIENT_GENERATOR / "bin" / "cli.js"))
    await run(*generator, f"{closed.url}/api/openapi.json", "-o", "schema.ts", folder=folder)
    tsc = (node, str(packages / "typescript" / "bin" / "tsc"))
    options = ("--noEmit", "--strict", "--module", "esnext", "--allowImportingTsExtensions")
    await run(*tsc, *options, "driver.ts", folder=folder)
    await drive(node, "driver.ts", closed=closed, folder=folder)
