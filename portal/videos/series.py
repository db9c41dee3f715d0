"""Series of videos, as other features name them. Their use cases are in `features.series`."""

from collections.abc import Collection
from uuid import UUID

from portal.accounts.permissions import Audience, Principal, audience_in
from portal.database.connection import fetch_rows
from portal.errors import SeriesLocked, SeriesNotFound
from portal.events.records import AUDIENCE_COLUMNS

# Columns of the audience of a series, which has no public page.
SERIES_AUDIENCE = (*AUDIENCE_COLUMNS, "unlock_id")
AUDIENCE = f"SELECT {', '.join(SERIES_AUDIENCE)} FROM series WHERE id = %s"  # noqa: S608
# Only videos that one of their editors added. Otherwise a person with whom a video is shared could
# open it to others by a series.
UNLOCKED_IN_SERIES = """
SELECT video.unlock_id FROM series
JOIN series_videos ON series_id = series.id JOIN publications video ON video.id = video_id
WHERE series.unlock_id = ANY (%s) AND video.unlock_id IS NOT NULL AND added_by_editor
"""


async def require_series(series_id: UUID | None, reader: Principal) -> Audience:
    """Return the audience of a series. Raises as `check_visible` unless the reader may see it."""
    rows = await fetch_rows(AUDIENCE, series_id)
    return check_visible(audience_in(rows[0]) if rows else None, reader)


def check_visible(audience: Audience | None, reader: Principal) -> Audience:
    """Return the audience of a series that the reader may see.

    Raises:
        SeriesNotFound: there is no series, or the reader may not see it.
        SeriesLocked: a password opens it, which was not entered in the reader's browser.
    """
    if audience is not None and reader.may_see(audience):
        return audience
    raise SeriesLocked if audience is not None and audience.is_locked else SeriesNotFound


async def fetch_unlocked_in_series(unlock_ids: Collection[UUID]) -> frozenset[UUID]:
    """Return the unlock ids of the videos that the passwords of some series open.

    `unlock_ids` are those of the series. The password of a series opens those of its videos that
    have a password, too, and that one of their editors added.
    """
    rows = await fetch_rows(UNLOCKED_IN_SERIES, list(unlock_ids))
    return frozenset(row["unlock_id"] for row in rows)
