"""Bars and axes of charts over time, as plain values in the language of the page.

Positions are percentages, so that a chart fits any width without scripts and inline styles. The
templates in `templates/statistics/` draw the charts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import count, groupby

from portal.features.statistics.figures import Sums
from portal.features.statistics.reading import DayFigures
from portal.http.languages import gettext, translated
from portal.locale.messages import numeral
from portal.text import date_in_words, day_in_words, month_in_words

# Longest periods with a bar for each day, and for each week.
MAX_DAILY_BARS = 92
MAX_WEEKLY_DAYS = 732
MAX_DATE_MARKS = 4
MAX_STEPS = 4
# Longest chart whose labels name days.
MAX_DAY_LABELS = 366
# Distance from the edges of a chart at which labels don't fit in the middle of their position.
EDGE_PERCENT = 5.0


@dataclass(frozen=True, slots=True)
class Mark:
    """Label of an axis at a position in percent."""

    position: float
    words: str
    edge: float = EDGE_PERCENT

    @property
    def anchor(self) -> str:
        """Return the `text-anchor` with which the label stays inside of the chart."""
        if self.position < self.edge:
            return "start"
        return "end" if self.position > 100 - self.edge else "middle"


@dataclass(slots=True, kw_only=True)
class Span(Sums):
    """Figures of consecutive days that share a bar."""

    start: date
    end: date

    @property
    def words(self) -> str:
        """Return the days in words."""
        last: str = translated(date_in_words(self.end))
        if self.start == self.end:
            return last
        # Translators: consecutive days, such as "29 Dec to 4 Jan 2026".
        return gettext("%(first)s to %(last)s", first=day_in_words(self.start), last=last)


@dataclass(frozen=True, slots=True)
class Measure:
    """Figure that a chart shows over time.

    `values` returns the values of a bar, the highest one first; None is unknown. `words` returns
    the text of a bar. `name` and `hint` are messages.
    """

    name: str
    values: Callable[[Span], Sequence[float | None]]
    words: Callable[[Span], str]
    hint: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars of a measure, and the labels of its axis.

    A bar has a text, and the heights of its values in percent.
    """

    measure: Measure
    bars: Sequence[tuple[str, Sequence[float]]]
    steps: Sequence[Mark]

    @property
    def is_empty(self) -> bool:
        """Return whether all values are zero or unknown."""
        return not any(any(heights) for _, heights in self.bars)


@dataclass(frozen=True, slots=True)
class Charts:
    """Figures by day, week or month, and charts that have a bar for each of these rows."""

    unit: str
    rows: Sequence[Span]
    dates: Sequence[Mark]
    charts: Sequence[Chart]


def draw_charts(days: Sequence[DayFigures], *measures: Measure) -> Charts:
    """Return charts with a bar for each day, or for each week or month if there are many days."""
    unit, key = _bar_unit(len(days))
    groups = [list(group) for _, group in groupby(days, key=lambda day: key(day.date))]
    rows = [Span.over(group, start=group[0].date, end=group[-1].date) for group in groups]
    charts = [_draw_chart(measure, rows) for measure in measures]
    return Charts(unit, rows, _date_marks(rows, has_days=len(days) <= MAX_DAY_LABELS), charts)


def _bar_unit(day_count: int) -> tuple[str, Callable[[date], object]]:
    """Return the name of a bar's length, and a function with equal values for its days."""
    if day_count <= MAX_DAILY_BARS:
        return "day", lambda day: day
    if day_count <= MAX_WEEKLY_DAYS:
        return "week", lambda day: day.isocalendar()[:2]
    return "month", lambda day: (day.year, day.month)


def _draw_chart(measure: Measure, rows: Sequence[Span]) -> Chart:
    values = [[value or 0 for value in measure.values(row)] for row in rows]
    steps = axis_steps(math.ceil(max(first for first, *_ in values)))
    bars = [
        (_bar_words(measure, row), [100 * value / steps[-1] for value in values_of])
        for row, values_of in zip(rows, values, strict=True)
    ]
    labels = [
        Mark(100 - 100 * step / steps[-1], translated(numeral(step)) + measure.unit)
        for step in steps
    ]
    return Chart(measure, bars, labels)


def _bar_words(measure: Measure, row: Span) -> str:
    # Translators: text of a bar of a chart, such as "4 Jan 2026: 3 views, 5 min watched".
    return gettext("%(days)s: %(figures)s", days=row.words, figures=measure.words(row))


def _date_marks(rows: Sequence[Span], *, has_days: bool) -> list[Mark]:
    """Return labels for some of the bars of these rows."""
    distance = -(-len(rows) // MAX_DATE_MARKS)
    return [
        Mark(
            100 * (place + 0.5) / len(rows),
            translated(day_in_words(row.start) if has_days else month_in_words(row.start)),
        )
        for place, row in enumerate(rows)
        if place % distance == 0
    ]


def axis_steps(highest: int) -> list[int]:
    """Return round numbers from 0 to at least `highest`, in at most `MAX_STEPS` equal steps."""
    units = (unit * 10**power for power in count() for unit in (1, 2, 5))
    step = next(unit for unit in units if unit * MAX_STEPS >= highest)
    return list(range(0, max(highest, 1) + step, step))
