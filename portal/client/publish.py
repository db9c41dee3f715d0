"""A small client of the portal's public JSON API: `portal publish`.

The calls are in `calls`, what goes to storage in `uploads`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp
import click

from portal.client.calls import REQUEST_TIMEOUT, Api
from portal.client.uploads import send_file

POLL_INTERVAL_S = 1.0
CONTENT_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".qt": "video/quicktime",
}


async def publish_file(
    file: Path,
    texts: Mapping[str, str],
    *,
    categories: Sequence[str],
    portal_url: str,
    token: str = "",
    wait: bool,
) -> None:
    """Publish a file and print its playback address, or its id when not waiting.

    `texts` are the video's title, description and tags; `categories` names or ids, as typed.
    `token` is an API token, for a portal with accounts.
    Raises `click.ClickException` with the portal's own words for what went wrong.
    """
    content_type = CONTENT_TYPES.get(file.suffix.lower())
    if content_type is None:
        known = ", ".join(CONTENT_TYPES)
        raise click.ClickException(f"{file.name}: only {known} files can be published.")
    async with aiohttp.ClientSession(timeout=REQUEST_TIMEOUT) as session:
        api = Api(session, portal_url, token=token)
        category_ids = await _category_ids(api, categories)
        wanted = {"fileName": file.name, "contentType": content_type}
        upload = await api.call("POST", "/api/videos/presign", wanted)
        await send_file(api, file, upload, content_type=content_type)
        named = {"categoryIds": category_ids, "fileName": file.name, "key": upload["key"]}
        video = await api.call("POST", "/api/videos", {**texts, **named})
        click.echo(f"Created {api.shown_url}/videos/{video['id']}", err=True)
        click.echo(await _playback_url(api, video["id"]) if wait else video["id"])


async def _category_ids(api: Api, wanted: Sequence[str]) -> list[int]:
    known = (await api.call("GET", "/api/categories"))["categories"]
    by_name = {category["name"].casefold(): category["id"] for category in known}
    by_id = {str(category["id"]): category["id"] for category in known}
    ids = []
    for name in wanted:
        found = by_id.get(name) or by_name.get(name.casefold())
        if found is None:
            names = "\n".join(f"  {category['id']:>3}  {category['name']}" for category in known)
            raise click.ClickException(f"There is no category {name!r}. Choose one of:\n{names}")
        ids.append(found)
    return ids


async def _playback_url(api: Api, video_id: str) -> str:
    click.echo("Converting…", err=True)
    while True:
        video = await api.call("GET", f"/api/videos/{video_id}")
        if video["status"] == "ready":
            return str(video["playbackUrl"])
        if video["status"] == "failed":
            raise click.ClickException("The video could not be converted; its page says why.")
        await asyncio.sleep(POLL_INTERVAL_S)
