"""Leases: a row says who works on something and until when.

Attempts, removals and posters each have one. The holder renews it while it works; times are the
database's. A worker that finds a lease expired may take over. It changes the fencing number that
the holder's updates are conditional on (the number of the attempt or poster request), so that a
holder that wakes up late changes nothing, and finds its lease lost.
"""

from datetime import datetime, timedelta
from typing import Any

from tortoise.expressions import Q, RawSQL
from tortoise.queryset import QuerySet

from portal.database.connection import server_time

# The one predicate; once for SQL by hand, once for the models. An expired lease is one not live.
IS_LIVE = "lease_expires_at > now()"
LIVE = Q(lease_expires_at__gt=RawSQL("now()"))
# Of attempts: one that a worker makes at this moment; one whose lease ran out is not under way.
IS_UNDER_WAY = f"outcome IS NULL AND {IS_LIVE}"
# Joins `video` with the columns of that attempt.
JOIN_ATTEMPT = f"""
LEFT JOIN LATERAL (
  SELECT * FROM attempts WHERE video_id = video.id AND {IS_UNDER_WAY} ORDER BY number DESC LIMIT 1
) attempt ON true
"""  # noqa: S608 - put together from constants


class LeaseLost(Exception):
    """Another worker took over; what was made under the lease must not be published."""


def renewed(duration_s: float) -> RawSQL:
    """The end of a lease that is renewed now, as a value for `update`."""
    return RawSQL(f"now() + make_interval(secs => {duration_s})")


async def first_end(duration_s: float) -> datetime:
    """The end of a lease that is taken now, as a value of a new row."""
    return await server_time() + timedelta(seconds=duration_s)


async def renew(held: QuerySet[Any], duration_s: float, **values: Any) -> None:
    """Renew the lease, and write these values; `held` is the row under the fencing number.

    Raises `LeaseLost` when there is no such row any more.
    """
    if not await held.update(lease_expires_at=renewed(duration_s), **values):
        raise LeaseLost
