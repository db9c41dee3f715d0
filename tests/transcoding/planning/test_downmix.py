"""Channels become two by where their speakers stand."""

import pytest
from probes import a_track

from portal.transcoding.planning.downmix import Downmix, downmix

LEFT = (1.0, 0.0)
RIGHT = (0.0, 1.0)
SOFTER = 0.7071


def mix_of(layout: str, channels: int) -> Downmix:
    return downmix(a_track(layout=layout, channels=channels))


def test_listed_channels_keep_their_sides_in_any_order() -> None:
    mix = mix_of("6 channels (FL+FC+FR+BL+BR+LFE)", 6)
    assert mix.gains == {
        "c0": LEFT,
        "c1": (SOFTER, SOFTER),
        "c2": RIGHT,
        "c3": (SOFTER, 0),
        "c4": (0, SOFTER),
    }
    assert not mix.leaves_out


@pytest.mark.parametrize(
    ("layout", "gains", "leaves_out"),
    [
        ("2 channels (FR+FL)", {"c0": RIGHT, "c1": LEFT}, False),
        ("1 channels (LFE)", {"c0": (1, 1)}, False),
        ("2 channels (UNSD+UNSD)", {"c0": LEFT, "c1": RIGHT}, False),
        ("4 channels (UNSD+UNSD+UNSD+UNSD)", {"c0": LEFT, "c1": RIGHT}, True),
        ("4 channels (FL+FR+UNSD+UNSD)", {"c0": LEFT, "c1": RIGHT}, False),
        ("3 channels (FL+FR+UNK)", {"c0": LEFT, "c1": RIGHT}, True),
        ("2 channels (FL+UNSD)", {"c0": (1, 1)}, False),
        ("2 channels (BL+LFE)", {"c0": (SOFTER, SOFTER)}, False),
        ("9 channels", {"c0": LEFT, "c1": RIGHT}, True),
    ],
)
def test_what_labels_do_not_tell_is_taken_from_the_first_two_channels(
    layout: str, gains: dict[str, tuple[float, float]], leaves_out: bool
) -> None:
    mix = mix_of(layout, int(layout[0]))
    assert mix.gains == gains
    assert mix.leaves_out == leaves_out


def test_ambisonic_sound_comes_from_all_directions() -> None:
    assert mix_of("ambisonic 1", 4) == Downmix(gains={"c0": (1, 1)}, is_spatial=True)


@pytest.mark.parametrize("layout", ["", "mono", "stereo", "1 channels", "2 channels"])
def test_mono_and_stereo_stay_as_they_are(layout: str) -> None:
    assert not mix_of(layout, 2).gains


@pytest.mark.parametrize("layout", ["5.1(side)", "7.1.4", "22.2", "binaural", "6 channels"])
def test_speakers_are_named_where_the_order_is_usual(layout: str) -> None:
    gains = mix_of(layout, 6).gains
    assert (gains["FL"], gains["TBR"], gains["BIL"]) == (LEFT, (0, SOFTER), LEFT)
    assert "LFE" not in gains
