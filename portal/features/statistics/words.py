"""Dates and numbers of statistics in the language of the page."""

from datetime import date

from portal.http.languages import pgettext


def tenths(value: float) -> str:
    """Return a number with one decimal."""
    whole, tenth = f"{value:.1f}".split(".")
    # Translators: a number with one decimal, such as 1.5.
    return pgettext("number", "%(whole)s.%(tenth)s", whole=whole, tenth=tenth)


def day_in_words(day: date) -> str:
    """Return a day as `4 Jan 2026`."""
    # Translators: a date, such as "4 Jan 2026".
    return pgettext(
        "date", "%(day)s %(month)s %(year)s", day=day.day, month=_month(day), year=day.year
    )


def day_of_year(day: date) -> str:
    """Return a day without its year: `4 Jan`."""
    # Translators: a date without a year, such as "4 Jan".
    return pgettext("date", "%(day)s %(month)s", day=day.day, month=_month(day))


def month_in_words(day: date) -> str:
    """Return the month of a day: `Jan 2026`."""
    # Translators: a month, such as "Jan 2026".
    return pgettext("date", "%(month)s %(year)s", month=_month(day), year=day.year)


def _month(day: date) -> str:
    # Translators: the months, as in "4 Jan 2026".
    names = (
        pgettext("month", "Jan"),
        pgettext("month", "Feb"),
        pgettext("month", "Mar"),
        pgettext("month", "Apr"),
        pgettext("month", "May"),
        pgettext("month", "Jun"),
        pgettext("month", "Jul"),
        pgettext("month", "Aug"),
        pgettext("month", "Sep"),
        pgettext("month", "Oct"),
        pgettext("month", "Nov"),
        pgettext("month", "Dec"),
    )
    return names[day.month - 1]
