"""Statistics of a video, for its editors: views, retention, and quality of playback."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from quart import Blueprint, Response, render_template, request, url_for

from portal.database.models import Video, VideoStatus
from portal.errors import NotFound
from portal.features.captions import service as captions
from portal.features.statistics.charts import Mark, Measure, Span, draw_charts
from portal.features.statistics.csv_files import csv_response, csv_start, csv_text
from portal.features.statistics.figures import COUNTS, OTHER, Counts
from portal.features.statistics.films import HUNDREDTHS
from portal.features.statistics.named_viewers import NamedViewer, list_viewers
from portal.features.statistics.periods import DEFAULT_PERIOD, Days, Period, days_of_period
from portal.features.statistics.reading import (
    DayFigures,
    PartFigures,
    Statistics,
    read_counts,
    read_statistics,
)
from portal.http.auth import Policy, policy
from portal.http.composition import web_context
from portal.http.formatting import position
from portal.http.languages import gettext, ngettext, translated
from portal.http.videos import read_video, spread_frames
from portal.locale.messages import Message, numeral
from portal.text import date_in_words, duration_in_words, shown, whole_number
from portal.transcoding.captions.sentences import join_sentences
from portal.transcoding.packaging.webvtt import read_webvtt

blueprint = Blueprint("statistics", __name__)

# Frames of the video above the retention's curve.
FRAMES = 12
# Distances of the rows of the retention's table, and of the stops of the Tab key on its curve.
TABLE_STEP = 5
TAB_STEP = 10
# A part counts as replayed from this many plays per viewer who saw it.
REPLAYED = 1.2
MAX_REPLAYED = 3
# A passage of the transcript ends with a sentence, or at this length.
MAX_PASSAGE_S = 30.0
MAX_DROPS = 5
# Smallest fall of the share of viewers within a passage that is listed.
LEAST_DROP = 0.03
# Sites with a row; the others share one.
SITE_ROWS = 10
# Distance from the edges of a chart at which tips don't fit in the middle of their position.
TIP_EDGE_PERCENT = 20.0
DEVICES = {
    "phone": Message("Phones"),
    "tablet": Message("Tablets"),
    "desktop": Message("Computers"),
    "tv": Message("TVs"),
}
# Translators: places where videos are watched.
PLACES = {
    "page": Message("On this portal"),
    "embed": Message("Embedded in other sites"),
    "other": Message("In other players"),
}
# Watch times from which minutes, or seconds, are left out.
MANY_HOURS = 100
MANY_MINUTES = 10
# Figures that are compared with those of the period before.
COMPARED = (
    "views",
    "viewers",
    "watch_ms",
    "average_share",
    "startup_s.median",
    "startup_s.p95",
    "stalls_per_hour",
    "failures",
)
# Largest difference from the period before that is called typical, in percent.
TYPICAL_PERCENT = 10
# Rows of a file of viewers, which is made in memory.
MAX_FILE_ROWS = 20_000
# Columns of the file of days.
DAY_COLUMNS = (
    "date",
    "views",
    "watch_seconds",
    "viewers",
    "average_share",
    "stalls",
    "failures",
)


@dataclass(frozen=True, slots=True)
class Moment:
    """Hundredth of a video: its start, the share of viewers who saw it, and its plays for each."""

    number: int
    start_s: int
    share: float
    replays: float

    @property
    def tip(self) -> Mark:
        """Return the label that is shown under the pointer."""
        words = f"{position(self.start_s)} · {percent(self.share)}"
        return Mark(self.number + 0.5, words, TIP_EDGE_PERCENT)


@dataclass(frozen=True, slots=True)
class Replayed:
    """Part of a video that viewers played again, from `first` up to `end` in hundredths."""

    first: int
    end: int
    start_s: int
    end_s: int
    replays: float


@dataclass(frozen=True, slots=True)
class RetentionChart:
    """Share of viewers by hundredths of the video.

    `line` is path data in a square of 100 units. `replayed` begins with the part that
    was replayed most.
    """

    moments: Sequence[Moment]
    line: str
    times: Sequence[Mark]
    replayed: Sequence[Replayed]


@dataclass(frozen=True, slots=True)
class Passage:
    """Sentences of the transcript, with the shares of viewers at their start and their end."""

    start_s: int
    text: str
    before: float
    after: float

    @property
    def drop(self) -> float:
        """Return by how much the share of viewers falls."""
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class Transcript:
    """Captions in a language as passages, and those at which most viewers leave."""

    language: str
    label: str
    passages: Sequence[Passage]
    drops: Sequence[Passage]


def _views_words(row: Span) -> str:
    return ngettext(
        "%(count)s view, %(time)s watched",
        "%(count)s views, %(time)s watched",
        row.views,
        count=numeral(row.views),
        time=watch_time(row.watch_s),
    )


VIEWS = Measure(Message("Views"), lambda row: (row.views,), _views_words)


@blueprint.app_template_global()
def statistics_url(video: Video) -> str | None:
    """Return the address of a video's statistics; None where there are none."""
    is_there = web_context().config.statistics and video.status is VideoStatus.READY
    return url_for("statistics.page", video_id=video.id) if is_there else None


@blueprint.app_template_filter()
def period_name(period: Period) -> str:
    """Return the name of a period in the address: its number of days, or "all"."""
    return str(period.days or "all")


@blueprint.app_template_filter()
def percent(share: float) -> str:
    """Return a share from 0 to 1 in percent; only a share of zero is shown as zero."""
    if 0 < share < 0.005:
        return gettext("under %(percent)s%%", percent=1)
    return gettext("%(percent)s%%", percent=numeral(100 * share, 0))


@blueprint.app_template_filter()
def watch_time(seconds: float) -> str:
    """Return a watch time with the units that matter at its length."""
    if seconds >= MANY_HOURS * 3600:
        # Translators: a time in hours.
        return gettext("%(hours)s h", hours=numeral(round(seconds / 3600)))
    if seconds >= MANY_MINUTES * 60:
        seconds = 60 * round(seconds / 60)
    words: str = translated(duration_in_words(round(seconds)))
    return words


@blueprint.app_template_filter()
def days_words(part: PartFigures) -> str:
    """Return the days on which a part's first and last viewers came."""
    first, last = (date_in_words(day) for day in (part.first_day, part.last_day) if day)
    # Translators: the days on which viewers came from a site.
    if first == last:
        return gettext("Only on %(day)s", day=first)
    return gettext("First on %(first)s, last on %(last)s", first=first, last=last)


@blueprint.get("/videos/<video_id>/statistics")
@policy(Policy.EDIT)
async def page(video_id: str) -> str:
    """Show the figures of a period."""
    video = await read_video(video_id)
    period = period_of_request()
    days = days_of_period(period)
    statistics = await read_statistics(video.id, days)
    after = whole_number(request.args.get("viewers", ""), max_digits=18)
    return await render_template(
        "statistics/video.html",
        video=video,
        statistics=statistics,
        period=period,
        periods=list(Period),
        charts=draw_charts(statistics.days, VIEWS),
        retention=retention_chart(statistics, duration_s=video.duration_s or 0.0),
        frames=await spread_frames(video, FRAMES),
        parts=part_tables(statistics),
        sites=site_rows(statistics),
        changes=await read_changes(video.id, statistics, days),
        transcript=await _read_transcript(video, statistics.retention),
        named=await list_viewers(video.id, config=web_context().config, after=after)
        if web_context().config.viewer_names
        else None,
        viewers_after=after,
        table_step=TABLE_STEP,
        tab_step=TAB_STEP,
    )


@blueprint.get("/videos/<video_id>/statistics.csv")
@policy(Policy.EDIT)
async def days_file(video_id: str) -> Response:
    """Return the figures of each day of a period for spreadsheets."""
    video = await read_video(video_id)
    days = (await read_statistics(video.id, days_of_period(period_of_request()))).days
    text = csv_start(DAY_COLUMNS) + csv_text(map(_day_row, days))
    return csv_response(text, name=f"views-{days[0].date}-{days[-1].date}")


@blueprint.get("/videos/<video_id>/viewers.csv")
@policy(Policy.EDIT)
async def viewers_file(video_id: str) -> Response:
    """Return the viewers of a video whose names are known, for spreadsheets."""
    video = await read_video(video_id)
    page = await list_viewers(video.id, config=web_context().config, limit=MAX_FILE_ROWS)
    rows = [
        [shown(value) if isinstance(value, str) else value for value in members.values()]
        for members in page.model_dump(mode="json", by_alias=False)["viewers"]
    ]
    text = csv_start(tuple(NamedViewer.model_fields)) + csv_text(rows)
    return csv_response(text, name=f"viewers-{video.id}")


def _day_row(day: DayFigures) -> Sequence[object]:
    share = round(day.average_share, 4)
    return day.date, day.views, day.watch_s, day.viewers, share, day.stalls, day.failures


def period_of_request() -> Period:
    """Return the period in the address, or `DEFAULT_PERIOD`.

    Raises `NotFound` while statistics are switched off.
    """
    if not web_context().config.statistics:
        raise NotFound(Message("Statistics are switched off on this portal."))
    periods = {period_name(period): period for period in Period}
    return periods.get(request.args.get("period", ""), DEFAULT_PERIOD)


def retention_chart(statistics: Statistics, *, duration_s: float) -> RetentionChart:
    """Return the curve of a video of this duration."""
    moments = [
        Moment(place, int(place * duration_s / HUNDREDTHS), share, replays)
        for place, (share, replays) in enumerate(
            zip(statistics.retention, statistics.replays, strict=True)
        )
    ]
    points = [f"{moment.number + 0.5},{100 - 100 * moment.share:.1f}" for moment in moments]
    first, last = (f"{100 - 100 * moment.share:.1f}" for moment in (moments[0], moments[-1]))
    line = f"M0,{first}L{' '.join(points)} 100,{last}"
    times = [
        Mark(place, position(place * duration_s / HUNDREDTHS)) for place in (0, 25, 50, 75, 100)
    ]
    return RetentionChart(moments, line, times, _replayed_parts(moments, duration_s))


def _replayed_parts(moments: Sequence[Moment], duration_s: float) -> list[Replayed]:
    """Return the parts that were replayed most."""
    parts = []
    for is_replayed, group in groupby(moments, key=lambda moment: moment.replays >= REPLAYED):
        run = list(group)
        if is_replayed:
            end = run[-1].number + 1
            replays = sum(moment.replays for moment in run) / len(run)
            end_s = int(end * duration_s / HUNDREDTHS)
            parts.append(Replayed(run[0].number, end, run[0].start_s, end_s, replays))
    return sorted(parts, key=lambda part: part.replays, reverse=True)[:MAX_REPLAYED]


def part_tables(statistics: Statistics) -> dict[str, list[PartFigures]]:
    """Return the rows of the tables of devices, places and heights."""
    # Translators: in a table of heights of the picture, such as "1080p".
    names = {OTHER: Message("Other"), "0": Message("Unknown")}
    heights = sorted(
        statistics.heights,
        key=lambda part: 0 if part.name == OTHER else int(part.name),
        reverse=True,
    )
    return {
        "devices": [
            replace(part, name=DEVICES.get(part.name, Message("Other devices")))
            for part in statistics.devices
        ],
        "places": [replace(part, name=PLACES[part.name]) for part in statistics.places],
        "heights": [replace(part, name=names.get(part.name, f"{part.name}p")) for part in heights],
    }


def site_rows(statistics: Statistics) -> list[PartFigures]:
    """Return rows for viewers without a site, for the largest sites, and for all others."""
    largest = [part for part in statistics.sites if part.name != OTHER][:SITE_ROWS]
    # Translators: viewers who came from no other site, or from an unknown one.
    direct = _remainder(Message("Direct or unknown"), statistics, statistics.sites)
    other_sites = _remainder(Message("Other sites"), statistics, [direct, *largest])
    rows = sorted([*largest, direct], key=lambda part: part.views, reverse=True)
    return [part for part in [*rows, other_sites] if part.viewers]


def _remainder(name: str, whole: Statistics, parts: Sequence[PartFigures]) -> PartFigures:
    """Return the figures of viewers that are in none of the parts.

    The parts are read after the whole, so their sums may be larger. The difference is then 0.
    """
    counts = {
        column: max(getattr(whole, column) - sum(getattr(part, column) for part in parts), 0)
        for column in COUNTS
    }
    lists = [part.startups for part in parts if part.startups]
    totals = zip(whole.startups, *lists, strict=False)
    startups = [max(total - sum(starts), 0) for total, *starts in totals]
    return PartFigures(name=name, startups=startups, **counts)


async def read_changes(video_id: UUID | None, statistics: Counts, days: Days) -> dict[str, str]:
    """Return how figures differ from those of as many days before, in words; empty without any.

    `video_id` is None for the figures of the library.
    """
    if days.before is None:
        return {}
    before = await read_counts(video_id, days.before)
    changes = {}
    for name in COMPARED if before.viewers else ():
        value, earlier = (attrgetter(name)(counts) for counts in (statistics, before))
        if value is not None and earlier is not None and (value or earlier):
            changes[name] = change_words(value, earlier, days=days.count or 0)
    return changes


def change_words(value: float, earlier: float, *, days: int) -> str:
    """Return how a figure differs from that of as many days before."""
    if not earlier:
        return ngettext(
            "None in the %(count)s day before",
            "None in the %(count)s days before",
            days,
            count=days,
        )
    change = round(100 * (value / earlier - 1))
    if not change:
        return ngettext(
            "Typical: as in the %(count)s day before",
            "Typical: as in the %(count)s days before",
            days,
            count=days,
        )
    amount = numeral(abs(change))
    if abs(change) > TYPICAL_PERCENT:
        return _difference_words(amount, days, is_more=change > 0)
    if change > 0:
        return ngettext(
            "Typical: %(percent)s%% more than in the %(count)s day before",
            "Typical: %(percent)s%% more than in the %(count)s days before",
            days,
            percent=amount,
            count=days,
        )
    return ngettext(
        "Typical: %(percent)s%% less than in the %(count)s day before",
        "Typical: %(percent)s%% less than in the %(count)s days before",
        days,
        percent=amount,
        count=days,
    )


def _difference_words(amount: str, days: int, *, is_more: bool) -> str:
    if is_more:
        return ngettext(
            "%(percent)s%% more than in the %(count)s day before",
            "%(percent)s%% more than in the %(count)s days before",
            days,
            percent=amount,
            count=days,
        )
    return ngettext(
        "%(percent)s%% less than in the %(count)s day before",
        "%(percent)s%% less than in the %(count)s days before",
        days,
        percent=amount,
        count=days,
    )


async def _read_transcript(video: Video, retention: Sequence[float]) -> Transcript | None:
    """Return the captions of a video, with the share of viewers before and after each sentence.

    They are the default captions, or the first others that have cues; None if none have.
    `retention` has the share of viewers in each hundredth of the video.
    """
    track = await captions.read_default_captions(video.id)
    if track is None or not video.duration_s:
        return None
    # A thread, because a text may have megabytes.
    parts = await asyncio.to_thread(
        passages, track.text or "", retention, duration_s=video.duration_s
    )
    drops = sorted(parts, key=lambda passage: passage.drop, reverse=True)[:MAX_DROPS]
    largest = [passage for passage in drops if passage.drop >= LEAST_DROP]
    return Transcript(track.language, track.label, parts, largest)


def passages(text: str, retention: Sequence[float], *, duration_s: float) -> list[Passage]:
    """Return captions (WebVTT) as sentences, joined to at least a hundredth of the video."""
    least_s = duration_s / HUNDREDTHS
    longest_s = max(MAX_PASSAGE_S, 2 * least_s)
    return [
        Passage(
            start_s=int(part.start_s),
            text=part.text,
            before=_share_at(part.start_s / least_s, retention),
            after=_share_at(part.end_s / least_s, retention),
        )
        for part in join_sentences(read_webvtt(text), least_s=least_s, longest_s=longest_s)
    ]


def _share_at(position: float, retention: Sequence[float]) -> float:
    """Return the share of viewers at a position in hundredths, between their middles."""
    before = min(max(int(position - 0.5), 0), HUNDREDTHS - 2)
    weight = min(max(position - 0.5 - before, 0.0), 1.0)
    return retention[before] * (1 - weight) + retention[before + 1] * weight
