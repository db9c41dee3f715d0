"""A viewer's day follows from the records of their players, however these arrive."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.features.statistics.cmcd import Device, Place, Record, State
from portal.features.statistics.films import Film
from portal.features.statistics.viewers import ViewerDay, add_records
from portal.transcoding.planning.kept import Interval, Kept

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
NOBODY = ViewerDay(first_at=NOW, last_at=NOW, device=Device.DESKTOP, place=Place.PAGE, site="")
DURATION_MS = 100_000
# Longer than anybody watches here, so that no watch time is cut.
LONG_MS = 1_000_000
FILM = Film.whole(DURATION_MS)


def record(at_s: float, state: State, position_s: float | None = None, **fields: object) -> Record:
    """Return a record of a session; its number is its time in tenths of a second."""
    position_ms = None if position_s is None else round(position_s * 1000)
    return Record(round(at_s * 1000), round(at_s * 10), state, position_ms, **fields)  # type: ignore[arg-type]


def watched(
    *records: Record, duration_ms: int = DURATION_MS, heights: Collection[int] = ()
) -> ViewerDay:
    film = replace(Film.whole(duration_ms), heights=heights)
    viewer, _ = add_records(NOBODY, records, received_at=NOW, film=film)
    return viewer


def ranges(plays: bytes) -> list[tuple[int, int, int]]:
    """Return the ranges of hundredths that were played equally often: first, last, plays."""
    parts: list[tuple[int, int, int]] = []
    for hundredth, count in enumerate(plays):
        if count and parts and parts[-1][1] == hundredth - 1 and parts[-1][2] == count:
            parts[-1] = (parts[-1][0], hundredth, count)
        elif count:
            parts.append((hundredth, hundredth, count))
    return parts


def test_played_parts_are_seen_and_a_seek_skips() -> None:
    viewer = watched(
        record(0, State.STARTING, 0),
        record(0.6, State.PLAYING, 0, height=720),
        record(10.6, State.PLAYING, 10, height=720),
        record(12.6, State.SEEKING, 12),
        record(13, State.PLAYING, 40, height=1080),
        record(23, State.PAUSED, 50),
        record(500, State.PLAYING, 50),
        record(505, State.ENDED, 55),
        heights=(360, 720, 1080),
    )
    assert ranges(viewer.plays) == [(0, 11, 1), (40, 54, 1)]
    assert viewer.watch_ms == 27_000
    assert viewer.heights == {720: 12_000, 1080: 10_000, 0: 5_000}
    assert viewer.startup_ms == 600
    assert (viewer.stalls, viewer.failures) == (0, 0)
    assert viewer.is_view


def test_replayed_part_counts_again() -> None:
    viewer = watched(
        record(0, State.PLAYING, 20),
        record(10, State.SEEKING, 30),
        record(11, State.PLAYING, 25),
        record(21, State.PAUSED, 35),
    )
    assert ranges(viewer.plays) == [(20, 24, 1), (25, 29, 2), (30, 34, 1)]


def test_stalls_and_failures_count_once_each() -> None:
    viewer = watched(
        record(0, State.STALLED, 0),
        record(1, State.PLAYING, 0, startup_ms=900),
        record(5, State.STALLED, 4),
        record(6, State.STALLED, 4),
        record(7, State.PLAYING, 4),
        record(8, State.SEEKING, 5),
        record(9, State.STALLED, 50),
        record(10, State.FAILED, 50),
        record(11, State.FAILED, 50),
    )
    assert (viewer.stalls, viewer.failures, viewer.startup_ms) == (1, 1, 900)


def test_double_speed_is_watched_in_half_the_time() -> None:
    viewer = watched(record(0, State.PLAYING, 0, rate=2.0), record(10, State.PAUSED, 20))
    assert ranges(viewer.plays) == [(0, 19, 1)]
    assert viewer.watch_ms == 10_000


def test_plays_of_a_cut_film_are_counted_in_the_whole_film() -> None:
    kept = Kept((Interval(10.2, 20), Interval(50, 50.6), Interval(90, 100)))
    film = Film.cut(kept, whole_s=100)
    records = [record(0, State.PLAYING, 0), record(10, State.PAUSED, 10)]
    viewer, _ = add_records(NOBODY, records, received_at=NOW, film=film)
    # The hundredths at the bounds are played, though not entirely.
    assert ranges(viewer.plays) == [(10, 19, 1)]
    assert viewer.seen == round(100 * 10 / 21)
    beyond = [record(0, State.PLAYING, 15), record(10, State.PAUSED, 25)]
    assert add_records(NOBODY, beyond, received_at=NOW, film=film)[1] == 1
    curve = film.curve(range(100))
    assert (curve[0], curve[47], curve[49], curve[99]) == (10, 19, 50, 99)
    moment = Film.cut(Kept((Interval(33.1, 33.8),)), whole_s=100)
    assert (moment.kept_hundredths, set(moment.curve(range(100)))) == ([33], {33})


def test_view_takes_ten_seconds_or_thirty_hundredths() -> None:
    began = record(0, State.PLAYING, 0)
    assert not watched(began, record(9, State.PAUSED, 9)).is_view
    assert watched(began, record(10, State.PAUSED, 10)).is_view
    assert watched(began, record(3, State.PAUSED, 3), duration_ms=9_000).is_view


def test_heights_that_no_rendition_has_are_unknown() -> None:
    made_up = [record(number, State.PLAYING, number, height=number) for number in range(60)]
    assert watched(*made_up, heights=(7, 50)).heights == {0: 57_000, 7: 1_000, 50: 1_000}


def test_players_without_positions_have_watch_time_alone() -> None:
    viewer = watched(record(0, State.PLAYING), record(30, State.PAUSED))
    assert (viewer.watch_ms, viewer.seen) == (30_000, 0)


@pytest.mark.parametrize(
    "second",
    [
        record(10, State.PAUSED, 40),
        record(10, State.PAUSED, -10 % 5),
        record(200, State.PAUSED, 100),
        record(10, State.PAUSED, 102),
    ],
    ids=["too fast", "backwards", "too long ago", "past the end"],
)
def test_impossible_playback_is_ignored(second: Record) -> None:
    first = record(0, State.PLAYING, 95 if second.position_ms == 102_000 else 7)
    viewer, ignored_count = add_records(NOBODY, [first, second], received_at=NOW, film=FILM)
    assert (viewer.watch_ms, viewer.seen, ignored_count) == (0, 0, 1)


records_of_a_session = st.lists(
    st.builds(
        Record,
        ts_ms=st.integers(0, 400_000),
        number=st.integers(0, 3),
        state=st.sampled_from(State),
        position_ms=st.none() | st.integers(0, 120_000),
        rate=st.sampled_from([0.5, 1.0, 2.0]),
        startup_ms=st.none() | st.integers(0, 5_000),
        height=st.sampled_from([0, 360, 720]),
    ),
    max_size=30,
).map(lambda records: sorted(records, key=lambda record: (record.ts_ms, record.number)))


@settings(max_examples=50)
@given(records_of_a_session, st.data())
def test_any_split_and_repetition_gives_the_same_day(
    records: list[Record], data: st.DataObject
) -> None:
    """Each report may be sent twice."""

    def added(viewer: ViewerDay, records: list[Record]) -> ViewerDay:
        return add_records(viewer, records, received_at=NOW, film=Film.whole(LONG_MS))[0]

    parts = NOBODY
    unsent = records
    while unsent:
        count = data.draw(st.integers(1, len(unsent)))
        for _ in range(data.draw(st.integers(1, 2))):
            parts = added(parts, unsent[:count])
        unsent = unsent[count:]
    assert parts == added(NOBODY, records)


@settings(max_examples=50)
@given(st.lists(records_of_a_session, max_size=5))
def test_session_is_one_viewer_whatever_it_reports(reports: list[list[Record]]) -> None:
    viewer = NOBODY
    for records in reports:
        viewer, _ = add_records(viewer, records, received_at=NOW, film=FILM)
    assert viewer.watch_ms <= DURATION_MS
    assert max(viewer.plays) <= 10
    assert viewer.seen <= 100
    assert sum(viewer.heights.values()) <= viewer.watch_ms
