"""The examples of docs/api.md do what it says, as they stand, against a running portal."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import build_frontend
import pytest
from aiohttp import web
from chromium import find_or_install
from command_line import portal as command
from command_line import run_program
from framing_site import framing_site, show_framed
from http_server import listening
from player_page import wait_for
from playwright.async_api import Browser
from running_portal import (
    LivePortal,
    call,
    create,
    final_status,
    free_port,
    fresh_portal,
    make_video,
    until,
)

pytestmark = pytest.mark.slow

GUIDE = (Path(__file__).parents[2] / "docs/api.md").read_text()
SITE_PORT = free_port()


def example(heading: str, language: str, number: int = 0) -> str:
    """A block of the guide: the first of this language below a heading, or a later one."""
    section = GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[number]


@pytest.fixture(scope="module")
async def portal(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """With a worker, and open to a page of another origin."""
    settings = {"OUTGOING_ALLOW_HTTP": "on", "OUTGOING_NETWORKS": "127.0.0.0/8"}
    origin = f"http://127.0.0.1:{SITE_PORT}"
    async with fresh_portal(
        services, worker=True, API_ALLOWED_ORIGINS=origin, **settings
    ) as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a reader's files."""
    find_or_install("jq", "jq")
    files = tmp_path_factory.mktemp("reader")
    make_video(files / "holiday.mp4")
    make_video(files / "take-2.mp4")
    (files / "film.mp4").write_bytes(os.urandom(20 * 1024**2))
    return files


def environ(portal: LivePortal, **more: str) -> dict[str, str]:
    return {**os.environ, "PORTAL_URL": portal.base_url, **more}


async def in_shell(portal: LivePortal, folder: Path, block: str, **more: str) -> str:
    argv = ("bash", "-eu", "-c", block)
    code, out, errors = await run_program(*argv, cwd=folder, env=environ(portal, **more))
    assert code == 0, errors
    return out


@asynccontextmanager
async def running(portal: LivePortal, folder: Path, *argv: str, **more: str) -> AsyncIterator[Path]:
    """Run a program until the end of the block; yields the file with its output."""
    output = folder / "output.txt"
    with output.open("wb") as file:
        child = await asyncio.create_subprocess_exec(
            *argv, cwd=folder, env=environ(portal, **more), stdout=file, stderr=file
        )
    try:
        yield output
    finally:
        child.kill()
        await child.wait()


async def test_shell_publishes_repeats_replaces_changes_and_deletes(
    portal: LivePortal, folder: Path
) -> None:
    out = await in_shell(portal, folder, example("Publish from a shell", "sh"))
    assert out.endswith('"status":"ready"\n')
    keys = {
        json.loads(await in_shell(portal, folder, example("Retry safely", "sh")))["key"]
        for _ in range(2)
    }
    assert len(keys) == 1
    video = json.loads((folder / "video.json").read_text())
    out = await in_shell(portal, folder, example("Replace the file", "sh"))
    assert out.endswith("}live\n")
    out = await in_shell(portal, folder, example("Publish, hide and delete at a time", "sh"))
    assert out == "2030-01-31T12:00:00.000000Z\n"
    assert float(await in_shell(portal, folder, example("Loudness", "sh"))) == 0
    assert await in_shell(portal, folder, example("Series", "sh")) == "1\n"
    out = await in_shell(portal, folder, example("Change, hide and delete", "sh"))
    assert '"passthrough":"order 17"' in out
    await call("GET", f"{portal.base_url}/api/videos/{video['id']}", status=404)


async def test_shell_uploads_in_parts(portal: LivePortal, folder: Path) -> None:
    out = await in_shell(portal, folder, example("Publish from a shell", "sh", 1))
    assert '"state":"stored"' in out.replace(" ", ""), out


async def test_shell_imports_and_lists(portal: LivePortal, folder: Path) -> None:
    app = web.Application()
    app.router.add_static("/", folder)
    async with listening(web.AppRunner(app)) as address:
        source = {"SOURCE_URL": f"{address}/holiday.mp4"}
        out = await in_shell(portal, folder, example("Import from an address", "sh"), **source)
    imported = json.loads(out)
    assert (imported["title"], imported["failure"]) == ("Imported", None)
    video_id = json.loads((folder / "import.json").read_text())["id"]
    await create(portal.base_url, folder / "holiday.mp4", title="Later")
    # The list includes videos that are being processed, and has several pages.
    block = example("List and search", "sh").replace("status=ready&", "")
    out = await in_shell(portal, folder, block.replace("limit=100", "limit=1"))
    lines = out.splitlines()
    assert f"{video_id} unlisted Imported" in lines
    assert [line.endswith(" public Later") for line in lines].count(True) == 1


async def test_shell_makes_tests_and_disables_a_webhook(portal: LivePortal, folder: Path) -> None:
    receiver = {"RECEIVER_URL": f"http://127.0.0.1:{free_port()}/"}
    out = await in_shell(portal, folder, example("Webhooks", "sh"), **receiver)
    assert out.split() == ["waiting", "webhook.test", "person"]
    assert (folder / "secret.txt").read_text().startswith("whsec_")


async def test_shell_creates_a_group_with_a_member(services: dict[str, str], folder: Path) -> None:
    async with fresh_portal(services, worker=False) as closed:
        for email, role in (("you@example.org", "owner"), ("ann@example.org", "viewer")):
            add = ("accounts", "add", email, "--role", role)
            assert (await command(closed.environ, *add)).code == 0
        add = ("tokens", "add", "you@example.org", "--name", "a test", "--scope", "admin")
        token = (await command(closed.environ, *add, "--scope", "videos:write")).out.strip()
        out = await in_shell(closed, folder, example("Groups", "sh"), PORTAL_TOKEN=token)
    assert out.splitlines() == ["ann@example.org", "Film staff 1"]


async def test_python_publishes_waits_and_lists(portal: LivePortal, folder: Path) -> None:
    argv = (sys.executable, "-c", example("Publish from Python", "python"))
    code, out, errors = await run_program(*argv, cwd=folder, env=environ(portal))
    assert code == 0, errors
    address, *listed = out.splitlines()
    assert address.endswith("/master.m3u8")
    assert {line.partition(" ")[2] for line in listed} == {"Holiday"}


async def test_page_of_another_site_publishes(portal: LivePortal, browser: Browser) -> None:
    async def page(_: web.BaseRequest) -> web.Response:
        return web.Response(text="<!doctype html><title>Site</title>", content_type="text/html")

    runner = web.ServerRunner(web.Server(page))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", SITE_PORT).start()
    opened = await browser.new_page()
    try:
        await opened.goto(f"http://127.0.0.1:{SITE_PORT}/")
        publish = example("From a page of another site", "js")
        video = await opened.evaluate(
            f"""(portal) => {{
                {publish}
                return publish(portal, new File(["a film"], "site.mp4"), "");
            }}""",
            portal.base_url,
        )
    finally:
        await opened.close()
        await runner.cleanup()
    assert (video["title"], video["status"]) == ("site.mp4", "processing")


async def test_page_of_another_site_controls_a_player(
    portal: LivePortal, folder: Path, browser: Browser
) -> None:
    video = await create(portal.base_url, folder / "holiday.mp4", title="Controlled")
    assert await final_status(portal.base_url, video["id"]) == "ready"
    page = await browser.new_page()
    async with framing_site() as site:
        frame = await show_framed(page, site, f"{portal.base_url}/embed/{video['id']}")
        await wait_for(frame, "video?.readyState >= 2")
        script = example("Control an embedded player", "js")
        await page.evaluate(f"() => {{ {script} }}")
        await page.wait_for_function("() => document.title === 'The end'")
    await page.close()


async def test_mirror_receives_all_events_and_resumes(portal: LivePortal, folder: Path) -> None:
    mirror = (sys.executable, "-c", example("Mirror a portal", "python"))

    async def is_equal() -> bool:
        videos = (await call("GET", f"{portal.base_url}/api/videos?include=passthrough"))["videos"]
        files = (folder / "mirror").glob("*.json")
        # The mirror may be writing a file.
        with suppress(json.JSONDecodeError):
            mirrored = {path.stem: json.loads(path.read_text()) for path in files}
            return mirrored == {video["id"]: video for video in videos}
        return False

    async def change(title: str) -> None:
        video = await create(portal.base_url, folder / "holiday.mp4", title=title)
        patch = {"json": {"title": f"{title}, edited"}}
        await call("PATCH", f"{portal.base_url}/api/videos/{video['id']}", **patch)

    await change("Before")
    for title in ("Meanwhile", "Later"):
        async with running(portal, folder, *mirror):
            await change(title)
            await until(is_equal, timeout_s=30)
        doomed = await create(portal.base_url, folder / "holiday.mp4", title="Doomed")
        await call("DELETE", f"{portal.base_url}/api/videos/{doomed['id']}", status=202)


@pytest.mark.parametrize("language", ["python", "js"])
async def test_receiver_of_a_webhook_verifies_the_sender(
    portal: LivePortal, folder: Path, language: str
) -> None:
    block = example("Webhooks", language)
    port = free_port()
    node, _ = build_frontend.find_node()
    argv = {
        "python": (sys.executable, "-c", block),
        "js": (node, "--input-type=module", "-e", block),
    }[language]
    url = f"http://127.0.0.1:{port}/"
    body = {"url": url, "events": ["video.created"]}
    webhook = await call("POST", f"{portal.base_url}/api/webhooks", status=201, json=body)
    more = {"WEBHOOK_SECRET": webhook["secret"], "PORT": str(port)}
    async with running(portal, folder, *argv, **more) as output, aiohttp.ClientSession() as session:

        async def refuses() -> bool:
            try:
                async with session.post(url, json={"type": "forged"}) as response:
                    return response.status == 401
            except aiohttp.ClientConnectionError:
                return False

        await until(refuses, timeout_s=20)
        own = f"{portal.base_url}/api/webhooks/{webhook['id']}"
        await call("POST", f"{own}/test", status=202)
        await until(lambda: "webhook.test" in output.read_text(), timeout_s=20)
        assert "forged" not in output.read_text()
