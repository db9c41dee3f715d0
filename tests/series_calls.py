"""Calls of the API of series."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from api_client import answered
from quart import Response
from signed_in import Sender

from portal.database.models import Video


def ids_of(videos: Iterable[Video]) -> list[str]:
    return [str(video.id) for video in videos]


async def make_series(sender: Sender, *videos: Video, **members: Any) -> str:
    """Create a series of these videos, and return its id."""
    body = {"title": "Birds", "visibility": "public", **members}
    series = await answered(await sender.post("/api/series", json=body), 201)
    if videos:
        await answered(await put_videos(sender, series["id"], ids_of(videos)))
    return str(series["id"])


async def put_videos(
    sender: Sender, series_id: str, ids: Iterable[str], version: str = "*"
) -> Response:
    return await sender.ask(
        "PUT",
        f"/api/series/{series_id}/videos",
        json={"videoIds": list(ids)},
        headers={"If-Match": version},
    )


async def put_audience(sender: Sender, series_id: str, **members: Any) -> Response:
    body = {"visibility": "private", "signedInOnly": False, **members}
    path = f"/api/series/{series_id}/access"
    return await sender.ask("PUT", path, json=body, headers={"If-Match": "*"})


async def patch(sender: Sender, series_id: str, version: str = "*", **members: Any) -> Response:
    headers = {"If-Match": version}
    return await sender.ask("PATCH", f"/api/series/{series_id}", json=members, headers=headers)


async def videos_of(sender: Sender, series_id: str | UUID) -> list[str]:
    """Return the ids of the videos of a series, as the sender sees it."""
    record = await answered(await sender.get(f"/api/series/{series_id}"))
    assert record["videoCount"] == len(record["videoIds"])
    ids: list[str] = record["videoIds"]
    return ids
