"""Pages of series: the list, a series with its videos, and what plays after a video."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import sql
from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.accounts.people import names_of
from portal.accounts.permissions import (
    Action,
    Audience,
    Principal,
    audience_of,
    visible_to,
    with_public_pages,
)
from portal.database.models import Video, VideoStatus, Visibility
from portal.errors import InvalidRequest, SeriesLocked, SeriesNotFound
from portal.features.series import service
from portal.features.series.api import NewSeries
from portal.features.series.service import SeriesSummary
from portal.features.watching.unlocking import password_fault, remember
from portal.http.addresses import own_path
from portal.http.auth import Policy, account_id, policy, principal
from portal.http.composition import web_context
from portal.http.errors import locked_page
from portal.http.schemas.validation import validated
from portal.http.server.context import state_of
from portal.http.server.limits import Rate
from portal.transcoding.planning.described_times import DescribedTimes
from portal.videos.reading import fetch_videos

blueprint = Blueprint("series", __name__)

PAGE_SIZE = 24
# Videos around the present one that the page of a video lists.
BEFORE = 5
LISTED = 50
# A description of a series has no times of a film.
NO_TIMES = DescribedTimes.of({}, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Playing:
    """Place of a video in a series: its index among the `total` videos that the viewer finds.

    `listed` are the videos around it with their numbers. `next` is the next one that can be played,
    if there is any.
    """

    series: SeriesSummary
    index: int
    total: int
    listed: Sequence[tuple[int, Video]]
    next: Video | None


@blueprint.app_template_global()
async def any_series() -> bool:
    """Return whether lists of the viewer include any series."""
    return await service.has_listed(await principal())


@blueprint.app_template_global()
async def playing_in(video: Video) -> Playing | None:
    """Return the place of a video in the series that the address names, if it is in it.

    A playback link grants its video alone, so its player stays at that.
    """
    series_id = request.args.get("series", "")
    if not series_id or state_of(request.scope).playback_token:
        return None
    viewer = await principal()
    try:
        series = await service.read_series(series_id, viewer)
    except (SeriesNotFound, SeriesLocked):
        return None
    videos = await service.fetch_videos_of(series.id, _found_by(viewer))
    index = next((place for place, member in enumerate(videos) if member.id == video.id), None)
    if index is None:
        return None
    listed = list(enumerate(videos, 1))[max(index - BEFORE, 0) :][:LISTED]
    return Playing(
        series=series,
        index=index,
        total=len(videos),
        listed=listed,
        next=_first_playable(videos[index + 1 :], viewer),
    )


@blueprint.get("/series")
@policy(Policy.WATCH)
async def index() -> str:
    """Show the series that the viewer can find."""
    return await _render_index()


@blueprint.post("/series")
@policy(Policy.PUBLISH)
async def create() -> ResponseReturnValue:
    """Create a series and show its form, or show the fault of its title."""
    title = (await request.form).get("title", "")
    try:
        new = validated(NewSeries, {"title": title})
    except InvalidRequest as exc:
        return await _render_index(typed=title, fault=exc.by_field["title"]), exc.status
    visibility = Visibility(web_context().config.default_visibility)
    audience = Audience(visibility, owner_id=await account_id())
    series_id = await service.create(new.title, "", audience=audience)
    return redirect(url_for("series_editing.editor", series_id=series_id), 303)


@blueprint.get("/series/<series_id>")
@policy(Policy.WATCH)
async def page(series_id: str) -> str:
    """Show a series, with those of its videos whose pages the viewer may see."""
    viewer = await principal()
    series = await service.read_series(series_id, viewer)
    videos = await service.fetch_videos_of(series.id, _found_by(viewer))
    owner_id = series.audience.owner_id
    return await render_template(
        "series/page.html",
        series=series,
        videos=videos,
        first=_first_playable(videos, viewer),
        duration_s=sum(video.duration_s or 0.0 for video in videos),
        by=(await names_of([owner_id])).get(owner_id, ""),
        times=NO_TIMES,
        may_edit=viewer.may(Action.EDIT, on=series.audience),
    )


@blueprint.post("/series/<series_id>/unlock")
@policy(Policy.ANYONE, rate=Rate.SIGN_IN)
async def unlock(series_id: str) -> ResponseReturnValue:
    """Open a series in the browser if the password is right, or show the form again."""
    form = await request.form
    next_path = own_path(form.get("next", ""))
    response = redirect(next_path, 303)
    for lock in await service.fetch_locks(series_id):
        fault = await password_fault(f"series {series_id}", form, lock["password_hash"])
        if fault:
            page = await locked_page(next_path, series_id=series_id, fault=fault)
            return page, SeriesLocked.status
        remember(response, lock["unlock_id"])
    return response


def _first_playable(videos: Iterable[Video], viewer: Principal) -> Video | None:
    """Return the first video that is ready and that the viewer may watch, if there is any."""
    ready = (video for video in videos if video.status is VideoStatus.READY)
    return next((video for video in ready if viewer.may_see(audience_of(video))), None)


def _found_by(viewer: Principal) -> sql.Composable:
    """Return the condition for videos whose pages the viewer may see in a series."""
    return with_public_pages(visible_to(viewer))


async def _render_index(**values: Any) -> str:
    viewer = await principal()
    after = service.parse_place(request.args.get("after", ""))
    listed, following = await service.list_series(
        viewer, limit=PAGE_SIZE, after=after, counted=_found_by(viewer)
    )
    first_ids: list[UUID] = [series.first_id for series in listed if series.first_id]
    return await render_template(
        "series/index.html",
        listed=listed,
        firsts=await fetch_videos(first_ids),
        after=after,
        following=following,
        names=await names_of(series.audience.owner_id for series in listed),
        **values,
    )
