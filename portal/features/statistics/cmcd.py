"""Reports of players in CMCD version 2 (CTA-5004-B): one RFC 8941 dictionary per line.

Standard keys: `cid` is the video, `sid` the session, `ts` the client's time and `sn` the number of
a record, `sta` the state of the player, `pt` the position, `pr` the rate, `msd` the start-up time,
`e` the event. The portal's own player adds `portal-height`, `portal-device`, `portal-place` and
`portal-site`. Unknown keys and values of a wrong type are ignored, as the standard demands.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import http_sf

MIMETYPE = "application/cmcd"
VERSION = 2
# A line longer than this is no report; parsing time grows with a line's length.
MAX_LINE_BYTES = 1024
MAX_LINES = 300
# Lines that are read while nothing else runs, in about a millisecond.
LINES_AT_ONCE = 20
# A player reports one session, or a few after an outage.
MAX_SESSIONS = 8
MAX_ID_LENGTH = 64
MAX_SITE_LENGTH = 64
MAX_RATE = 16.0
MAX_HEIGHT = 8640
MAX_STARTUP_MS = 600_000
# Largest integer of an RFC 8941 item.
MAX_MS = 10**15 - 1
SITE = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::\d{1,5})?")
ERROR_EVENT = "e"


class State(StrEnum):
    """State of a player, as the key `sta` abbreviates it."""

    STARTING = "s"
    PLAYING = "p"
    SEEKING = "k"
    STALLED = "r"
    PAUSED = "a"
    WAITING = "w"
    ENDED = "e"
    FAILED = "f"
    QUIT = "q"
    PRELOADING = "d"


class Device(StrEnum):
    """Class of the device that a viewer watches on."""

    PHONE = "phone"
    TABLET = "tablet"
    DESKTOP = "desktop"
    TV = "tv"
    OTHER = "other"


class Place(StrEnum):
    """Place where a video is watched: its page, a player on another site, or another player."""

    PAGE = "page"
    EMBED = "embed"
    OTHER = "other"


class Record(NamedTuple):
    """State of a player at one moment.

    `ts_ms` is the time on the client's clock, and `number` orders records of the same time.
    `position_ms` is the playhead's position, None if it is unknown. `rate` is the speed of
    playback. `startup_ms` is the time from the request to play to the first frame, in one record of
    a session. `height` is that of the shown picture in pixels, 0 if it is unknown.
    """

    ts_ms: int
    number: int
    state: State
    position_ms: int | None = None
    rate: float = 1.0
    startup_ms: int | None = None
    height: int = 0


def record_of(values: Sequence[Any]) -> Record:
    """Return a record from its JSON, the list of its fields."""
    ts_ms, number, state, *optional_values = values
    return Record(ts_ms, number, State(state), *optional_values)


@dataclass(frozen=True, slots=True)
class SessionReport:
    """Records of one session of a player with one video, in their order."""

    video_id: str
    session_id: str
    device: Device
    place: Place
    site: str
    records: tuple[Record, ...]


async def read_reports(body: bytes) -> tuple[list[SessionReport], int]:
    """Read a request's body, which has a record in each line, and let other tasks run meanwhile.

    Return the records by session, and the number of lines that are skipped: those that are no
    records, and those over `MAX_LINES` and of sessions over `MAX_SESSIONS`.
    """
    lines = [line for line in map(bytes.strip, body.split(b"\n")) if line]
    unreadable_count = max(len(lines) - MAX_LINES, 0)
    # The last values of the members, and the records.
    sessions: dict[tuple[str, str], tuple[dict[str, Any], list[Record]]] = {}
    for number, line in enumerate(lines[:MAX_LINES], 1):
        if number % LINES_AT_ONCE == 0:
            await asyncio.sleep(0)
        members = _read_line(line)
        if members is None:
            unreadable_count += 1
            continue
        session = (members["cid"], members["sid"])
        if session in sessions or len(sessions) < MAX_SESSIONS:
            facts, records = sessions.setdefault(session, ({}, []))
            facts.update(members)
            records.append(_record(members))
        else:
            unreadable_count += 1
    reports = [_session_report(*ids, *contents) for ids, contents in sessions.items()]
    return reports, unreadable_count


def _read_line(line: bytes) -> Mapping[str, Any] | None:
    """Return the members of a line; None unless it is a report that can be attributed."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        parsed: Any = http_sf.parse(line, tltype="dictionary")
    except http_sf.StructuredFieldError:
        return None
    # A member is an item, or a list of items for several streams, with its parameters.
    members = {name: item for name, (item, _) in parsed.items()}
    is_report = (
        members.get("v") == VERSION
        and _is_id(members.get("cid"))
        and _is_id(members.get("sid"))
        and _integer(members.get("ts"), MAX_MS) is not None
    )
    return members if is_report else None


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID_LENGTH


def _session_report(
    video_id: str, session_id: str, facts: Mapping[str, Any], records: Iterable[Record]
) -> SessionReport:
    site = _text(facts.get("portal-site"))
    is_site = len(site) <= MAX_SITE_LENGTH and SITE.fullmatch(site) is not None
    return SessionReport(
        video_id=video_id,
        session_id=session_id,
        device=_member(Device, facts.get("portal-device")) or Device.OTHER,
        place=_member(Place, facts.get("portal-place")) or Place.OTHER,
        site=site if is_site else "",
        records=tuple(sorted(records, key=lambda record: (record.ts_ms, record.number))),
    )


def _record(members: Mapping[str, Any]) -> Record:
    state = _member(State, members.get("sta")) or State.WAITING
    if _text(members.get("e")) == ERROR_EVENT:
        state = State.FAILED
    height = _text(members.get("portal-height"))
    return Record(
        ts_ms=members["ts"],
        number=_integer(members.get("sn"), MAX_MS) or 0,
        state=state,
        position_ms=_integer(members.get("pt"), MAX_MS),
        rate=_rate(members.get("pr")),
        startup_ms=_integer(members.get("msd"), MAX_STARTUP_MS),
        height=int(height) if re.fullmatch(r"\d{1,4}", height) and int(height) <= MAX_HEIGHT else 0,
    )


def _text(value: Any) -> str:
    """Return a string, or the text of a token; empty for other types."""
    return str(value) if isinstance(value, (str, http_sf.Token)) else ""


def _member(kind: type[Any], value: Any) -> Any:
    """Return the member of an enumeration with this value; None if there is none."""
    try:
        return kind(_text(value))
    except ValueError:
        return None


def _integer(value: Any, highest: int) -> int | None:
    """Return an integer from 0 to `highest`; None for other values."""
    is_good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= highest
    return value if is_good else None


def _rate(value: Any) -> float:
    try:
        rate = float(value)
    except (TypeError, ValueError):
        return 1.0
    return rate if 0 < rate <= MAX_RATE else 1.0
