"""Leases: a row that says who works on something, until when, and for the how manieth time.

Attempts, removals and posters are worked on under one each. The holder renews it while it works;
the times are the database's. Who finds a lease expired may take over, and then changes what the
holder's updates are conditional on (the fencing number: an attempt's number, a poster request's,
the closing of the row), so that a holder that wakes up late changes nothing and finds it lost.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tortoise.expressions import Q, RawSQL
from tortoise.queryset import QuerySet

from portal.database.connection import server_time

# The one predicate; once for SQL by hand, once for the models. An expired lease is one not live.
IS_LIVE = "lease_expires_at > now()"
LIVE = Q(lease_expires_at__gt=RawSQL("now()"))


class LeaseLost(Exception):
    """It ran out and someone else took over; what was made under it must not be published."""


def renewed(duration_s: float) -> RawSQL:
    """The end of a lease that is renewed for so long, as a value for `update`."""
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
