"""API of statistics: the reports of players, and the figures of videos and the library.

A report is answered alike whether it counts or not, so that nobody learns anything by sending one.
"""

import asyncio
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from pydantic import Field, RootModel
from quart import Blueprint, Response, request
from quart_schema import (
    document_querystring,
    document_request,
    document_response,
    tag_blueprint,
)

from portal.accounts.permissions import Action, Audience, audience_in, audience_of, listed_for
from portal.concurrency import task_group
from portal.database.connection import Row
from portal.database.models import Video, VideoStatus
from portal.errors import (
    FieldError,
    InvalidRequest,
    NotReports,
    PlaybackTokenRefused,
    StatisticsOff,
    UnreadableReports,
)
from portal.events.records import Id, Shape
from portal.features.statistics import cmcd, folding, intake, named_viewers, reading
from portal.features.statistics.cmcd import SessionReport
from portal.features.statistics.films import HUNDREDTHS
from portal.features.statistics.intake import InboxReport, Visitors, write_reports
from portal.features.statistics.named_viewers import NamedViewers
from portal.features.statistics.periods import DEFAULT_PERIOD, Days, Period, days_of_period
from portal.features.statistics.reading import Ranking
from portal.http import json_bodies
from portal.http.auth import Policy, may_watch, policy, principal
from portal.http.composition import DataLoader, web_context
from portal.http.cookies import has_session_cookie
from portal.http.schemas.base import ClosedShape, Day, Problem, Text
from portal.http.schemas.validation import validated_query
from portal.http.server.context import networks_of, state_of
from portal.http.server.limits import Body, Rate
from portal.http.videos import read_video
from portal.locale.messages import Message, numeral
from portal.telemetry.metrics import count_reports
from portal.videos.playback_links import Viewer
from portal.videos.reading import fetch_states, parse_video_id

blueprint = Blueprint("api_statistics", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Statistics"])

REPORTS = "/playback"
# Lines of a report that count as a request. A player sends about ten every 100 s.
LINES_PER_REQUEST = 10
REPORTS_PAUSE_S = 1.0

MAX_LIMIT = 200
# Days of one answer, which lists each of them: ten years.
MAX_DAYS = 3_653
CACHE_CONTROL = "private, no-cache"
Share = Annotated[float, Field(ge=0, le=1)]


class Intake:
    """Objects with which a web process takes reports.

    Players don't wait for the answers, so many reports share each statement.
    """

    def __init__(self) -> None:
        self.visitors = Visitors()
        self.reading = asyncio.Lock()
        self.videos: DataLoader[UUID, Row] = DataLoader(fetch_states, pause_s=REPORTS_PAUSE_S)
        self.writes: DataLoader[InboxReport, bool] = DataLoader(
            write_reports, pause_s=REPORTS_PAUSE_S
        )


class PlaybackReports(RootModel[str]):
    """Lines of CMCD version 2 (CTA-5004-B)."""


class DaysQuery(ClosedShape):
    """Days of statistics, in UTC. The first and the last one are included."""

    from_: Day | None = Field(
        None, alias="from", description="First day; by default the first one with figures."
    )
    to: Day | None = Field(None, description="Last day; today by default, and at most.")


class WatchedRecord(Shape, from_attributes=True):
    """Figures of some viewers."""

    views: int = Field(description="Number of views.")
    watch_seconds: int = Field(
        validation_alias="watch_s", description="Time for which viewers watched."
    )


class DayRecord(WatchedRecord):
    """Figures of one day."""

    date: Annotated[date, Field(description="The day, in UTC.")]


class HeightRecord(WatchedRecord):
    """Figures of a height of the picture."""

    name: str = Field(description="Height of the picture in pixels.")


class StartupRecord(Shape, from_attributes=True):
    """Time from the press of play to the first frame; null without start-up times.

    Quantiles are within 5 % from 0.05 s to 58 s. Shorter times count as 0.05 s, longer ones as
    55 s.
    """

    median: float | None = Field(description="Median in seconds.")
    p95: float | None = Field(description="95th percentile in seconds.")


class PartRecord(WatchedRecord):
    """Figures of a part of the viewers."""

    name: str = Field(description="Name of the device, place or site.")
    viewers: int = Field(description="Viewers of each day, summed.")
    startup_seconds: StartupRecord = Field(
        validation_alias="startup_s", description="Times from the press of play to the first frame."
    )
    stalls_per_hour: float = Field(description="Stalls per hour of watching.")
    failures: int = Field(description="Number of failures of playback.")


class FiguresRecord(Shape, from_attributes=True):
    """Figures of a video or of all videos over some days."""

    views: int = Field(description="Viewers who played 10 s or 30 % of the video.")
    viewers: int = Field(
        description="Page views that played any of the video, once a day; at most "
        f"{folding.MAX_OF_VIDEO} new ones of a video in an hour from one network."
    )
    watch_seconds: int = Field(
        validation_alias="watch_s", description="Time for which viewers watched."
    )
    average_share: Share = Field(description="Mean share of a video that viewers saw.")
    startup_seconds: StartupRecord = Field(
        validation_alias="startup_s", description="Times from the press of play to the first frame."
    )
    stalls_per_hour: float = Field(description="Stalls per hour of watching.")
    failures: int = Field(description="Number of failures of playback.")
    days: list[DayRecord] = Field(description="Figures by day.")
    devices: list[PartRecord] = Field(description="Figures by kind of device.")
    places: list[PartRecord] = Field(
        description="On the video's page, embedded in other sites, or in other players."
    )
    heights: list[HeightRecord] = Field(
        description="Watch time by the height of the picture; views are not divided by it."
    )


class StatisticsRecord(FiguresRecord):
    """Figures of a video over some days."""

    retention: list[Share] = Field(
        description="Share of the viewers who saw each hundredth of the video.",
        min_length=HUNDREDTHS,
        max_length=HUNDREDTHS,
    )
    replays: list[float] = Field(
        description="How often each hundredth was played, for each viewer who saw it.",
        min_length=HUNDREDTHS,
        max_length=HUNDREDTHS,
    )
    sites: list[PartRecord] = Field(description="Sites that viewers came from, or watched on.")


class LibraryStatisticsQuery(DaysQuery):
    """Days of the library's statistics, and order and page of its videos."""

    period: Period = Field(
        DEFAULT_PERIOD, description="Days up to today, in UTC, instead of `from` and `to`."
    )
    sort: Ranking = Field(Ranking.VIEWS, description="Order of the videos.")
    limit: int = Field(50, ge=1, le=MAX_LIMIT, description="Most records of a page.")
    after: Text = Field("", description="`nextCursor` of the page before.")


class VideoFiguresRecord(WatchedRecord):
    """Figures of a video in the period."""

    id: Id = Field(description="Identifier of the video.")
    title: str = Field(description="Title of the video.")
    viewers: int = Field(description="Viewers of each day, summed.")
    average_share: Share = Field(description="Mean share of the video that viewers saw.")


class LibraryStatisticsRecord(FiguresRecord):
    """Figures of all videos in a period, and a page of the videos that were watched."""

    sites: list[PartRecord] | None = Field(
        description=f"The {reading.MAX_LIBRARY_SITES} sites with the most views, without start-up "
        "times. Null with `after`, and if summing them takes longer than 5 s."
    )
    videos: list[VideoFiguresRecord] = Field(
        description="Figures of videos, in the requested order."
    )
    next_cursor: str | None = Field(description="Start of the next page; null on the last page.")


class ViewersQuery(ClosedShape):
    """Page of the named viewers of a video."""

    after: int | None = Field(
        None, ge=1, le=2**63 - 1, description="`nextCursor` of the page before."
    )


@blueprint.app_template_global()
async def names_viewer(video: Video) -> bool:
    """Return whether the editors of a video learn who the viewer is that sends the request."""
    return (
        video.status is VideoStatus.READY
        and reports_url() is not None
        and not _is_opted_out()
        and await _named_viewer(video.id) is not None
        and not await _is_editor(audience_of(video))
    )


@blueprint.app_template_global()
def reports_url() -> str | None:
    """Return the address for the reports of a page's player; None if statistics are off.

    It has no host, and keeps the playback link of the page.
    """
    is_wanted = web_context().config.statistics
    return f"{request.root_path}{blueprint.url_prefix}{REPORTS}" if is_wanted else None


@blueprint.get("/videos/<id>/statistics")
@policy(Policy.EDIT)
@document_querystring(DaysQuery)
@document_response(StatisticsRecord)
async def get_statistics(id: str) -> Response:
    """Read how often a video was watched, how far, and how well it played.

    New reports of players are included within 15 s.
    """
    video = await read_video(id)
    days = _days_of(validated_query(DaysQuery, request.args))
    statistics = await reading.read_statistics(video.id, days)
    record = StatisticsRecord.model_validate(statistics)
    return json_bodies.json_response(record, cache_control=CACHE_CONTROL)


def _days_of(query: DaysQuery) -> Days:
    """Return the days of a query. Raises `InvalidRequest` if there are none, or too many."""
    today = datetime.now(UTC).date()
    end = min(query.to or today, today)
    if query.from_ and query.from_ > end:
        raise _refused(
            "/from", Message("This is after the last day, %(day)s. Give an earlier day.", day=end)
        )
    if query.from_ and end - query.from_ >= timedelta(days=MAX_DAYS):
        raise _refused(
            "/from",
            Message("Ask for at most %(limit)s days at a time.", limit=numeral(MAX_DAYS)),
        )
    return Days(query.from_, end)


def _refused(pointer: str, fault: str) -> InvalidRequest:
    return InvalidRequest([FieldError(pointer, fault)])


@blueprint.get("/videos/<id>/viewers")
@policy(Policy.EDIT)
@document_querystring(ViewersQuery)
@document_response(NamedViewers)
async def list_viewers(id: str) -> Response:
    """List the viewers of a video whose names are known, in pages of 200.

    They are people with an account, guests, and viewers whom a playback link names. New reports of
    players are included within 15 s. Answers 404 while `VIEWER_NAMES` is off.
    """
    video = await read_video(id)
    page = await named_viewers.list_viewers(
        video.id,
        config=web_context().config,
        after=validated_query(ViewersQuery, request.args).after,
    )
    response = json_bodies.json_response(page, cache_control=CACHE_CONTROL)
    if page.next_cursor:
        json_bodies.link_to_next(response, after=str(page.next_cursor))
    return response


@blueprint.get("/statistics")
@policy(Policy.PUBLISH, rate=Rate.LISTING)
@document_querystring(LibraryStatisticsQuery)
@document_response(LibraryStatisticsRecord)
async def get_library_statistics() -> Response:
    """Read the figures of all videos on some days, and the most watched videos, page by page.

    The figures include videos that you can't see. `videos` has those that you can see in the
    library, and that were watched on these days. `from` and `to` take longer than a period. A video
    whose figures change meanwhile may be listed twice, or be left out.
    """
    query = validated_query(LibraryStatisticsQuery, request.args)
    after = reading.RankingCursor.parse(query.after, query.sort)
    if query.after and after is None:
        fault = Message("The cursor belongs to another query. Repeat the request without `after`.")
        raise _refused("/after", fault)
    has_days = query.from_ is not None or query.to is not None
    if has_days and "period" in query.model_fields_set:
        raise _refused("/period", Message("Leave this out, or `from` and `to`."))
    days = _days_of(query) if has_days else days_of_period(query.period)
    statistics = await reading.read_statistics(None, days)
    ranked = await reading.rank_videos(
        query.sort,
        days=days,
        listed=listed_for(await principal()),
        limit=query.limit,
        after=after,
    )
    record = LibraryStatisticsRecord(
        **dict(FiguresRecord.model_validate(statistics)),
        # Sites take the longest, and are the same on all pages.
        sites=None if after else await reading.read_library_sites(days),
        videos=ranked.videos,
        next_cursor=str(ranked.next) if ranked.next else None,
    )
    response = json_bodies.json_response(record, cache_control=CACHE_CONTROL)
    if record.next_cursor:
        json_bodies.link_to_next(response, after=record.next_cursor)
    return response


@blueprint.post(REPORTS)
@policy(
    Policy.PLAY,
    body=Body(content_types=(cmcd.MIMETYPE,), lines_per_request=LINES_PER_REQUEST),
    rate=Rate.REPORTS,
    content_types=(),
)
@document_request(PlaybackReports)
@document_response(Problem, 410)
async def report_playback() -> Response:
    """Report what a player plays, in lines of CMCD version 2 (CTA-5004-B).

    Each line is a dictionary of RFC 8941 with `v=2`, the video's id as `cid`, a session id as
    `sid`, and the time `ts`. A part of the video counts as played between two lines of a session if
    the first one has `sta=p`; with the position `pt` it also counts for the retention. Send a line
    at each change of `sta`, before each seek, and every 10 s. Each page view needs another session
    id. A request may have 300 lines of 8 sessions; ten lines count as one towards the rate
    limit. The answer does not tell whether the report counts.
    """
    web = web_context()
    state = state_of(request.scope)
    state.is_routine = True
    if not web.config.statistics:
        raise StatisticsOff
    if request.mimetype != cmcd.MIMETYPE:
        raise NotReports
    body: bytes = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    user_agent = request.headers.get("User-Agent", "")
    # Many large reports at once would take turns of the event loop that add up.
    taking = web.shared(Intake)
    async with taking.reading:
        sessions, unreadable_count = await cmcd.read_reports(body)
    count_reports("unreadable", unreadable_count)
    if unreadable_count and not sessions:
        raise UnreadableReports
    if _is_opted_out():
        count_reports("opted_out", len(sessions))
    elif intake.is_bot(user_agent):
        count_reports("bot", len(sessions))
    else:
        async with task_group() as tasks:
            for session in sessions:
                tasks.create_task(_accept(session, client=state.client, user_agent=user_agent))
    return Response(status=HTTPStatus.NO_CONTENT)


def _is_opted_out() -> bool:
    """Return whether the sender opted out by Global Privacy Control or Do Not Track."""
    return "1" in (request.headers.get("Sec-GPC"), request.headers.get("DNT"))


async def _accept(session: SessionReport, *, client: str, user_agent: str) -> None:
    """Write a session's report to the inbox if it counts."""
    taking = web_context().shared(Intake)
    video_id = parse_video_id(session.video_id)
    video = await taking.videos.load(video_id) if video_id else None
    try:
        is_visible = await may_watch(video_id, audience_in(video) if video else None)
    except PlaybackTokenRefused:
        is_visible = False
    if video is None or not is_visible:
        outcome = "unknown_video"
    elif video["status"] != VideoStatus.READY:
        outcome = "preview"
    elif await _is_editor(audience_in(video)):
        outcome = "editor"
    else:
        viewer = await _named_viewer(video["id"])
        # A named viewer has the limits of a network: a class may share one, and nobody can make up
        # names.
        visitor = await taking.visitors.identify(
            networks=[viewer.id] if viewer else networks_of(client), user_agent=user_agent
        )
        await taking.writes.load(InboxReport.of(session, visitor, video["id"], viewer))
        outcome = "accepted"
    count_reports(outcome, 1)


async def _named_viewer(video_id: UUID) -> Viewer | None:
    """Return the sender as a named viewer; None for strangers, and while `VIEWER_NAMES` is off.

    They must be allowed to watch the video. A playback link that names its viewer counts more than
    an account.
    """
    if not web_context().config.viewer_names:
        return None
    if token := state_of(request.scope).playback_token:
        verified = await web_context().signing_keys.verify(token, video_id=video_id)
        if verified.viewer:
            return Viewer(f"external:{verified.viewer.id}", verified.viewer.label)
    caller = await principal()
    if caller.account_id is not None:
        return Viewer(f"account:{caller.account_id}", "")
    # Only guests have an e-mail address without an account.
    return Viewer(f"guest:{caller.email}", caller.email) if caller.email else None


async def _is_editor(audience: Audience) -> bool:
    """Return whether the caller has an account that may edit a video with this audience."""
    if not has_session_cookie(request.scope):
        return False
    caller = await principal()
    return caller.account_id is not None and caller.may(Action.EDIT, on=audience)
