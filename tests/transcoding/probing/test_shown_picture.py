"""Apertures and transfer curves are taken as the file means them."""

import struct

import pytest

from portal.transcoding.probing.boxes import PictureEntry
from portal.transcoding.probing.shown_picture import (
    NO_MARGINS,
    aperture_margins,
    is_dolby_only,
    named_transfer,
)

BT709 = 1
UNSPECIFIED = 2
PQ = 16
HLG = 18


def margins_of(
    *aperture: int, entry: tuple[int, int] = (320, 180), frame: tuple[int, int] | None = None
) -> tuple[int, ...]:
    picture = PictureEntry(entry, {b"clap": struct.pack(">8i", *aperture)})
    return aperture_margins(picture, frame or entry)


@pytest.mark.parametrize(
    ("aperture", "margins"),
    [
        # Margins are around the centre.
        ((240, 1, 180, 1, 0, 1, 0, 1), (0, 0, 40, 40)),
        ((240, 1, 160, 1, -40, 1, 10, 1), (20, 0, 0, 80)),
        ((240, 1, 160, 1, 79, 2, -9, 2), (5, 15, 79, 1)),
        ((320, 1, 180, 1, 0, 1, 0, 1), NO_MARGINS),
        # An absurd aperture cuts nothing.
        ((400, 1, 180, 1, 0, 1, 0, 1), NO_MARGINS),
        ((240, 1, 180, 1, 100, 1, 0, 1), NO_MARGINS),
        ((0, 1, 180, 1, 0, 1, 0, 1), NO_MARGINS),
        ((1, 1000, 180, 1, 0, 1, 0, 1), NO_MARGINS),
        ((-240, 1, 180, 1, 0, 1, 0, 1), NO_MARGINS),
        ((240, 0, 180, 1, 0, 1, 0, 1), NO_MARGINS),
        ((240, 1, 180, -1, 0, 1, 0, 1), NO_MARGINS),
    ],
)
def test_an_aperture_cuts_margins(aperture: tuple[int, ...], margins: tuple[int, ...]) -> None:
    assert margins_of(*aperture) == margins


def test_a_fractional_aperture_is_rounded_and_frames_of_another_size_are_left_whole() -> None:
    assert margins_of(41472, 59, 576, 1, 0, 1, 0, 1, entry=(720, 576)) == (0, 0, 8, 9)
    imx = margins_of(704, 1, 480, 1, 0, 1, 0, 1, entry=(720, 486), frame=(720, 512))
    assert imx == NO_MARGINS


@pytest.mark.parametrize(
    ("transfer", "compatibility", "has_hdr_metadata", "named"),
    [
        (UNSPECIFIED, 0, False, UNSPECIFIED),
        (UNSPECIFIED, 0, True, PQ),
        (UNSPECIFIED, 1, False, PQ),
        (UNSPECIFIED, 6, False, PQ),
        (UNSPECIFIED, 4, True, HLG),
        (UNSPECIFIED, 2, False, UNSPECIFIED),
        (BT709, 2, True, BT709),
        (HLG, 0, True, HLG),
    ],
)
def test_a_file_is_hdr_when_something_says_so(
    transfer: int, compatibility: int, has_hdr_metadata: bool, named: int
) -> None:
    curve = named_transfer(transfer, compatibility=compatibility, has_hdr_metadata=has_hdr_metadata)
    assert curve == named


def test_only_some_profiles_of_dolby_vision_have_no_other_base_layer() -> None:
    compatible = [(0, 0), (4, 2), (7, 6), (7, 0), (8, 1), (8, 4), (10, 1), (10, 4)]
    assert not any(is_dolby_only(*versions) for versions in compatible)
    assert all(is_dolby_only(*versions) for versions in [(5, 0), (5, 1), (10, 0), (20, 0)])
