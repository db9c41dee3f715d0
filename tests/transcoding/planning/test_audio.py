"""Sound tracks become renditions: each its own, or several mono tracks together."""

from typing import Any

from probes import a_probe, a_track

from portal.transcoding.planning.tracks import AudioRung, plan_audio

MONO: dict[str, Any] = {"codec": "pcm_s24le", "channels": 1, "layout": "mono", "end_s": 60.0}


def planned(*changes: dict[str, Any]) -> tuple[AudioRung, ...]:
    """Plan mono tracks with these differences, in streams from 1 on."""
    tracks = [a_track(**{**MONO, "index": n, **each}) for n, each in enumerate(changes, 1)]
    return plan_audio(a_probe(640, 360, audio=tracks, duration_s=60.0), may_copy=True)


def streams(*changes: dict[str, Any]) -> list[tuple[int, ...]]:
    return [(rung.index, *rung.joined) for rung in planned(*changes)]


def test_mono_tracks_become_stereo_pairs_in_the_order_of_the_file() -> None:
    assert streams({}, {}) == [(1, 2)]
    assert streams({"index": 2}, {"index": 1}) == [(1, 2)]
    assert streams({}, {}, {}, {}) == [(1, 2), (3, 4)]
    assert streams({}, {}, {}) == [(1, 2), (3,)]
    left_and_right = planned({}, {})[0]
    assert left_and_right.channels == 2
    assert left_and_right.gains == {"c0": (1.0, 0.0), "c1": (0.0, 1.0)}


def test_silent_tracks_are_left_out_unless_all_are() -> None:
    silent = {"is_silent": True}
    assert streams({}, silent, {}, silent) == [(1, 3)]
    assert streams(silent, {}) == [(2,)]
    assert streams(silent, silent) == [(1, 2)]


def test_tracks_that_differ_are_renditions_of_their_own() -> None:
    alone = [(1,), (2,)]
    assert streams({"language": "eng"}, {"language": "deu"}) == alone
    assert streams({}, {"title": "Commentary"}) == alone
    english_aac = {"codec": "aac", "language": "eng"}
    assert streams(english_aac, english_aac) == alone
    assert streams({}, {"end_s": 30.0}) == alone
    assert streams({}, {"codec": "aac"}) == alone
    assert streams({}, {"channels": 2, "layout": "stereo"}) == alone
    assert streams({"end_s": None}, {"end_s": None}) == alone


def test_uncompressed_tracks_of_one_language_are_channels() -> None:
    assert streams({"language": "eng"}, {"language": "eng"}) == [(1, 2)]


def test_labelled_mono_tracks_are_mixed_by_their_labels() -> None:
    labels = ("1 channels (FR)", "1 channels (FL)", "mono", "1 channels (LFE)")
    [rung] = planned(*({"layout": label} for label in labels))
    assert (rung.index, *rung.joined) == (1, 2, 3, 4)
    assert rung.gains == {"c0": (0.0, 1.0), "c1": (1.0, 0.0), "c2": (0.7071, 0.7071)}
