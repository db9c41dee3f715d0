"""Series of videos, as other features name them. Their use cases are in `features.series`."""

from uuid import UUID

from portal.accounts.permissions import Audience, Principal, audience_in
from portal.database.connection import fetch_rows
from portal.errors import SeriesNotFound
from portal.events.records import AUDIENCE_COLUMNS

AUDIENCE = f"SELECT {', '.join(AUDIENCE_COLUMNS)} FROM series WHERE id = %s"  # noqa: S608


async def require_series(series_id: UUID | None, reader: Principal) -> Audience:
    """Return the audience of a series. Raises `SeriesNotFound` unless the reader may see it."""
    rows = await fetch_rows(AUDIENCE, series_id)
    audience = audience_in(rows[0]) if rows else None
    if audience is None or not reader.may_see(audience):
        raise SeriesNotFound
    return audience
