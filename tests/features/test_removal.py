"""A feature is removed with its folder and its line: the portal works without it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from running_portal import create, final_status, fresh_portal

ROOT = Path(__file__).parent.parent.parent
IGNORED = shutil.ignore_patterns("__pycache__", "node_modules")
# Prints the addresses of all pages and documents that need at most the id of a video.
ROUTES = """
import json
from portal.web.app import create_app

rules = create_app().url_map.iter_rules()
print(json.dumps([
    rule.rule for rule in rules
    if "GET" in (rule.methods or ()) and rule.arguments <= {"id", "video_id"}
]))
"""
# Features that one copy of the portal is without. A feature goes with those that import it: feeds
# with discovery, downloads and series; hand-in with series. The first copy shows that these three
# work without them.
GROUPS = (
    ("feeds", "hand_in", "groups", "recording", "schedule", "webhooks"),
    ("discovery", "downloads", "series", "feeds", "hand_in"),
    ("imports", "loudness", "posters", "statistics"),
)
# Responses that don't end, or need what no request here has.
UNREAD = ("/api/events/stream",)


@pytest.mark.slow
@pytest.mark.parametrize("names", GROUPS, ids=" ".join)
async def test_portal_works_without_features(
    names: tuple[str, ...], services: dict[str, str], short_video: Path, tmp_path: Path
) -> None:
    copy = copied_without(names, tmp_path)
    async with fresh_portal(
        services, worker=True, PYTHONPATH=str(copy), PYTHONSAFEPATH="1"
    ) as portal:
        video = await create(portal.base_url, short_video)
        assert await final_status(portal.base_url, video["id"]) == "ready"
        statuses = {}
        async with aiohttp.ClientSession() as session:
            for path in routes_of(copy, portal.environ):
                address = portal.base_url + re.sub(r"<[^>]+>", video["id"], path)
                async with session.get(address, allow_redirects=False) as response:
                    statuses[path] = response.status
    assert [path for path in statuses if any(f"/{name}" in path for name in names)] == []
    assert {path: status for path, status in statuses.items() if status >= 500} == {}
    assert list(statuses.values()).count(200) > 30


def copied_without(names: tuple[str, ...], folder: Path) -> Path:
    """Copy the portal without these features, and return the folder of the copy."""
    for part in ("portal", "templates", "static/dist"):
        shutil.copytree(ROOT / part, folder / part, ignore=IGNORED)
    features = folder / "portal" / "features"
    composition = features / "__init__.py"
    for name in names:
        shutil.rmtree(features / name)
        text = composition.read_text()
        composition.write_text(re.sub(rf"(?m)^    {name}(\.FEATURE)?,\n", "", text))
    return folder


def routes_of(folder: Path, environ: dict[str, str]) -> list[str]:
    """Return the rules of a copy's routes for GET, without those that can't be read here."""
    settings = {"PATH": os.environ["PATH"], **environ}
    listed = subprocess.run(
        [sys.executable, "-c", ROUTES], env=settings, capture_output=True, check=True, text=True
    )
    rules: list[str] = json.loads(listed.stdout.splitlines()[-1])
    return [rule for rule in rules if rule not in UNREAD]
