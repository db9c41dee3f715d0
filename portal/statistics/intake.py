"""The intake of reports: their visitors, user agents of bots, and the inbox that is written to.

The visitor is a keyed hash of address and user agent. Its key, the salt, is replaced daily and kept
in an unlogged table, which backups leave out; so nobody can find out later who a visitor was.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from crawleruseragents import is_crawler

from portal.concurrency import CachedValue
from portal.database.connection import execute, fetch_rows, rows_json
from portal.statistics.cmcd import SessionReport

SALT_BYTES = 32
SALT_MAX_AGE_S = 60.0
HASH_BYTES = 16
# Longer user agents are cut: the search for names of bots takes time in proportion.
MAX_AGENT_LENGTH = 512
AGENT_CACHE_SIZE = 4096
# Today's salt; the first process of a day makes it, and deletes older ones.
SALT = """
WITH today AS (SELECT (now() AT TIME ZONE 'UTC')::date AS day),
     past AS (DELETE FROM playback_salts USING today WHERE playback_salts.day < today.day)
INSERT INTO playback_salts SELECT day, %s FROM today
ON CONFLICT (day) DO UPDATE SET day = excluded.day RETURNING day, salt
"""
WRITE = """
INSERT INTO playback_inbox (video_id, day, visitor, session, device, place, site, records)
SELECT * FROM jsonb_to_recordset(%s) AS report (
  video_id uuid, day date, visitor bytea, session bytea, device text, place text, site text,
  records jsonb
)
"""


class Visitor(NamedTuple):
    """Hash of a visitor, and the day for which it stands for them."""

    day: date
    hash: bytes


@dataclass(frozen=True, slots=True, eq=False)
class InboxReport:
    """Records of one session of a visitor with a video."""

    video_id: UUID
    visitor: Visitor
    session: SessionReport


class Visitors:
    """Hashes of visitors, by the salt of the day."""

    def __init__(self) -> None:
        self._salt = CachedValue(_read_salt)

    async def identify(self, *, address: str, user_agent: str) -> Visitor:
        """Return today's hash of a client's IP address and user agent."""
        day, salt = await self._salt.get(max_age_s=SALT_MAX_AGE_S)
        agent = user_agent[:MAX_AGENT_LENGTH]
        hashed = hashlib.blake2b(f"{address}\n{agent}".encode(), key=salt, digest_size=HASH_BYTES)
        return Visitor(day, hashed.digest())


async def _read_salt() -> tuple[date, bytes]:
    [row] = await fetch_rows(SALT, secrets.token_bytes(SALT_BYTES))
    return row["day"], bytes(row["salt"])


@lru_cache(AGENT_CACHE_SIZE)
def is_bot(user_agent: str) -> bool:
    """Return whether a user agent is that of a program, such as a search engine's."""
    return not user_agent or is_crawler(user_agent[:MAX_AGENT_LENGTH])


async def write_reports(reports: Sequence[InboxReport]) -> dict[InboxReport, bool]:
    """Write reports to the inbox. Return True for each, as a `DataLoader` expects."""
    rows = [
        {
            "video_id": report.video_id,
            "day": report.visitor.day,
            "visitor": report.visitor.hash,
            "session": _session_hash(report.session.session_id),
            "device": report.session.device,
            "place": report.session.place,
            "site": report.session.site,
            "records": report.session.records,
        }
        for report in reports
    ]
    await execute(WRITE, rows_json(rows))
    return dict.fromkeys(reports, True)


def _session_hash(session_id: str) -> bytes:
    """Return a short name of a session: ids of players may be long."""
    return hashlib.blake2b(session_id.encode(), digest_size=8).digest()
