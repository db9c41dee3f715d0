"""Reports are read as CMCD version 2 demands: what is unknown or wrong is left out."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.concurrency import running
from portal.features.statistics.cmcd import (
    LINES_AT_ONCE,
    MAX_LINES,
    MAX_SESSIONS,
    Device,
    Place,
    Record,
    SessionReport,
    State,
    read_reports,
)

LINE = 'v=2,cid="film",sid="a",ts=1000'
# A line that hls.js sends by itself. It has no position.
FOREIGN = (
    'br=(5128),cid="film",e=ps,ec=("a"),mtp=(500),pr=1.5,sf=h,sid="b",sn=3,sta=p,st=v,'
    "ts=2000,v=2,com.example-x=?1\n"
)
KEYS = ["cid", "sid", "ts", "sn", "sta", "pt", "pr", "msd", "e", "v", "br", "portal-height"]
VALUES = ["2", "-1", "1.5", '"film"', "p", "?1", "(1 2)", ":AAA=:", "999999999999999", '"\\""', ""]


def read(body: str | bytes) -> tuple[list[SessionReport], int]:
    return asyncio.run(read_reports(body.encode() if isinstance(body, str) else body))


def test_line_of_the_portals_player_is_read() -> None:
    facts = 'portal-device=tablet,portal-place=embed,portal-site="blog.example",portal-height="720"'
    line = f"{LINE},e=t,sn=7,sta=p,pt=1500,pr=2,msd=640,{facts}"
    [session], _ = read(line)
    assert (session.device, session.place, session.site) == (
        Device.TABLET,
        Place.EMBED,
        "blog.example",
    )
    assert session.records == (Record(1000, 7, State.PLAYING, 1500, 2.0, 640, 720),)


def test_line_of_another_player_is_read() -> None:
    [session], unreadable = read(FOREIGN)
    assert (session.device, session.place, session.site) == (Device.OTHER, Place.OTHER, "")
    assert session.records == (Record(2000, 3, State.PLAYING, rate=1.5),)
    assert unreadable == 0


@pytest.mark.parametrize(
    "line",
    [
        LINE.replace("v=2", "v=3"),
        LINE.replace('cid="film"', "cid=7"),
        LINE.replace("ts=1000", "ts=-5"),
        LINE.replace('"a"', f'"{"a" * 65}"'),
        f'{LINE},x="{"a" * 1000}"',
        LINE[:-1] + "é",
        "[1]",
        "nonsense",
    ],
)
def test_line_that_cannot_be_attributed_is_unreadable(line: str) -> None:
    for report in (f"{LINE}\n{line}", f"{line}\r\n\n{LINE} \r\n"):
        assert read(report) == (read(LINE)[0], 1)


def test_values_of_a_wrong_type_or_size_are_left_out() -> None:
    wrong = 'sta=zz,pt=-1,pr=0,msd=1.5,sn="a",portal-height="12345",portal-device=fridge'
    [session], unreadable = read(f"{LINE},{wrong}")
    assert (session.records, unreadable) == ((Record(1000, 0, State.WAITING),), 0)
    [session], _ = read(f'{LINE},portal-site="A B/<script>"')
    assert session.site == ""


def test_further_lines_are_not_read() -> None:
    sessions, unreadable = read("\n".join([LINE] * (MAX_LINES + 5)))
    assert (len(sessions[0].records), unreadable) == (MAX_LINES, 5)
    lines = [LINE.replace('"a"', f'"{number}"') for number in range(MAX_SESSIONS + 3)]
    sessions, unreadable = read("\n".join([*lines, lines[0]]))
    assert [len(session.records) for session in sessions] == [2] + [1] * (MAX_SESSIONS - 1)
    assert unreadable == 3


async def test_other_tasks_run_while_a_long_report_is_read() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with running(count_turns()):
        await read_reports("\n".join([LINE] * MAX_LINES).encode())
    assert turns >= MAX_LINES // LINES_AT_ONCE


lines = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES)).map("=".join), max_size=12
).map(",".join)


@given(st.binary(max_size=300) | st.lists(lines, max_size=5).map("\n".join).map(str.encode))
def test_any_body_is_read_without_an_error(body: bytes) -> None:
    sessions, _ = read(body)
    for session in sessions:
        assert list(session.records) == sorted(
            session.records, key=lambda record: (record.ts_ms, record.number)
        )
