"""The intake of reports: their visitors, user agents of bots, and the inbox that is written to.

A visitor and their networks are keyed hashes. The key, the salt, is replaced daily and kept in an
unlogged table, which backups leave out; so nobody can find out later who a visitor was.
"""

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import lru_cache
from typing import NamedTuple, Self
from uuid import UUID

from crawleruseragents import is_crawler

from portal.concurrency import CachedValue
from portal.database.connection import Row, execute, fetch_rows, rows_json
from portal.features.statistics.cmcd import SessionReport
from portal.videos.playback_links import Viewer

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
INSERT INTO playback_inbox
  (video_id, day, visitor, networks, session, device, place, site, records, named_viewer)
SELECT * FROM jsonb_to_recordset(%s) AS report (
  video_id uuid, day date, visitor bytea, networks bytea[], session bytea, device text, place text,
  site text, records text, named_viewer jsonb
)
"""
# Reports in one statement. Their rows are put together while nothing else runs.
CHUNK = 50


class Visitor(NamedTuple):
    """Hash of a visitor, those of their networks, and the day for which these stand for them."""

    day: date
    hash: bytes
    networks: Sequence[bytes]


@dataclass(frozen=True, slots=True, eq=False)
class InboxReport:
    """Records of one session of a visitor with a video, as a row of the inbox."""

    row: Row

    @classmethod
    def of(
        cls,
        session: SessionReport,
        visitor: Visitor,
        video_id: UUID,
        named_viewer: Viewer | None = None,
    ) -> Self:
        """Return the report of a session, with the key and label of a viewer who is named."""
        return cls(
            {
                "video_id": video_id,
                "day": visitor.day,
                "visitor": visitor.hash,
                "networks": visitor.networks,
                "session": _session_hash(session.session_id),
                "device": session.device,
                "place": session.place,
                "site": session.site,
                "records": json.dumps(session.records),
                "named_viewer": named_viewer and asdict(named_viewer),
            }
        )


class Visitors:
    """Hashes of visitors, by the salt of the day."""

    def __init__(self) -> None:
        self._salt = CachedValue(_read_salt)

    async def identify(self, *, networks: Sequence[str], user_agent: str) -> Visitor:
        """Return today's hashes of a client's networks, and of the first one and a user agent."""
        day, salt = await self._salt.get(max_age_s=SALT_MAX_AGE_S)

        def hashed(text: str) -> bytes:
            return hashlib.blake2b(text.encode(), key=salt, digest_size=HASH_BYTES).digest()

        visitor = f"{networks[0]}\n{user_agent[:MAX_AGENT_LENGTH]}"
        return Visitor(day, hashed(visitor), [hashed(network) for network in networks])


async def _read_salt() -> tuple[date, bytes]:
    [row] = await fetch_rows(SALT, secrets.token_bytes(SALT_BYTES))
    return row["day"], bytes(row["salt"])


@lru_cache(AGENT_CACHE_SIZE)
def is_bot(user_agent: str) -> bool:
    """Return whether a user agent is that of a program, such as a search engine's."""
    return not user_agent or is_crawler(user_agent[:MAX_AGENT_LENGTH])


async def write_reports(reports: Sequence[InboxReport]) -> dict[InboxReport, bool]:
    """Write reports to the inbox. Return True for each, as a `DataLoader` expects."""
    for start in range(0, len(reports), CHUNK):
        await execute(WRITE, rows_json(report.row for report in reports[start : start + CHUNK]))
    return dict.fromkeys(reports, True)


def _session_hash(session_id: str) -> bytes:
    """Return a short name of a session: ids of players may be long."""
    return hashlib.blake2b(session_id.encode(), digest_size=8).digest()
