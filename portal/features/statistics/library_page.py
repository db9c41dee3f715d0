"""Statistics of the library, for people who can publish: all videos, and quality of playback."""

from collections.abc import AsyncIterator, Sequence

from psycopg import sql
from quart import Blueprint, Response, render_template, request, url_for

from portal.accounts.permissions import Action, listed_for
from portal.features.statistics.charts import Measure, Span, draw_charts
from portal.features.statistics.csv_files import csv_response, csv_start, csv_text
from portal.features.statistics.pages import (
    VIEWS,
    part_tables,
    period_name,
    period_of_request,
    read_changes,
)
from portal.features.statistics.periods import Days, Period, days_of_period
from portal.features.statistics.reading import (
    Ranking,
    RankingCursor,
    VideoFigures,
    rank_videos,
    read_statistics,
)
from portal.http.auth import Policy, policy, principal
from portal.http.composition import web_context
from portal.http.languages import gettext, translated
from portal.http.server.limits import Rate
from portal.locale.messages import Message, numeral
from portal.text import shown

blueprint = Blueprint("library_statistics", __name__)

PAGE_SIZE = 25
SORTED_COLUMNS = {
    Ranking.VIEWS: Message("Views"),
    Ranking.WATCH_TIME: Message("Watch time"),
    # Translators: head of a column: the average share of a video that viewers watch.
    Ranking.AVERAGE_SHARE: Message("Average share"),
}
# Columns of the file of videos.
VIDEO_COLUMNS = ("id", "title", "views", "viewers", "watch_seconds", "average_share")
# Rows of the file that are read at once.
CSV_CHUNK = 2_000
# Enough for a large library over a slow connection.
CSV_TIMEOUT_S = 600


def _startup_words(row: Span) -> str:
    median, p95 = row.startup_s
    if median is None or p95 is None:
        # Translators: a start-up time, after the day of a bar: "4 Jan 2026: unknown".
        return gettext("unknown")
    # Translators: start-up times of viewers, after the day of a bar. "s" are seconds.
    return gettext(
        "half within %(median)s s, 95%% within %(p95)s s",
        median=numeral(median, 1),
        p95=numeral(p95, 1),
    )


def _stalls_words(row: Span) -> str:
    # Translators: a number of stalls, after the day of a bar: "4 Jan 2026: 1.5 per hour".
    return gettext("%(stalls)s per hour", stalls=numeral(row.stalls_per_hour, 1))


MEASURES = (
    VIEWS,
    Measure(
        Message("Start-up time"),
        lambda row: (row.startup_s.p95, row.startup_s.median),
        _startup_words,
        Message(
            "Half of the viewers wait no longer than the solid part, 95% no longer than the whole"
            " bar."
        ),
        unit=" s",
    ),
    Measure(
        Message("Stalls per hour"),
        lambda row: (row.stalls_per_hour,),
        _stalls_words,
        Message("Pauses to load, per hour watched."),
    ),
    Measure(
        Message("Failures"),
        lambda row: (row.failures,),
        lambda row: translated(numeral(row.failures)),
        Message("Playback that ended with an error."),
    ),
)


@blueprint.app_template_global()
def library_statistics_url() -> str | None:
    """Return the address of the library's statistics; None where they are switched off."""
    return url_for("library_statistics.page") if web_context().config.statistics else None


@blueprint.get("/statistics")
@policy(Policy.PUBLISH, rate=Rate.LISTING)
async def page() -> str:
    """Show the figures of a period, and the videos that were watched in it."""
    period = period_of_request()
    days = days_of_period(period)
    ranking = _ranking_of_request()
    after = RankingCursor.parse(request.args.get("after", ""), ranking)
    person = await principal()
    statistics = await read_statistics(None, days)
    ranked = await rank_videos(
        ranking,
        days=days,
        listed=listed_for(person),
        limit=PAGE_SIZE,
        after=after,
    )
    return await render_template(
        "statistics/library.html",
        statistics=statistics,
        period=period,
        periods=list(Period),
        ranking=ranking,
        columns=SORTED_COLUMNS,
        ranked=ranked,
        is_first=after is None,
        editable={
            video.id for video in ranked.videos if person.may(Action.EDIT, on=video.audience)
        },
        sees_all=person.sees_all,
        charts=draw_charts(statistics.days, *MEASURES),
        changes=await read_changes(None, statistics, days),
        parts=part_tables(statistics),
    )


@blueprint.get("/statistics.csv")
@policy(Policy.PUBLISH, rate=Rate.LISTING)
async def videos_file() -> Response:
    """Return the figures of all videos of a period for spreadsheets."""
    period = period_of_request()
    days = days_of_period(period)
    listed = listed_for(await principal())
    lines = _video_lines(_ranking_of_request(), days, listed=listed)
    response = csv_response(lines, name=f"videos-{period_name(period)}-{days.end}")
    response.timeout = CSV_TIMEOUT_S
    return response


def _ranking_of_request() -> Ranking:
    name = request.args.get("sort")
    return next((ranking for ranking in Ranking if ranking == name), Ranking.VIEWS)


async def _video_lines(
    ranking: Ranking, days: Days, *, listed: sql.Composable
) -> AsyncIterator[str]:
    """Yield the lines of the file, some thousands at a time."""
    yield csv_start(VIDEO_COLUMNS)
    after = None
    while True:
        ranked = await rank_videos(ranking, days=days, listed=listed, limit=CSV_CHUNK, after=after)
        yield csv_text(map(_video_row, ranked.videos))
        after = ranked.next
        if after is None:
            return


def _video_row(video: VideoFigures) -> Sequence[object]:
    share = round(video.average_share, 4)
    return video.id, shown(video.title), video.views, video.viewers, video.watch_s, share
