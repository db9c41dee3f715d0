"""Apertures, shapes of pixels and transfer curves are taken as the file means them."""

from fractions import Fraction

import pytest

from portal.transcoding.probing.boxes import PictureEntry
from portal.transcoding.probing.shown_picture import (
    Margins,
    aperture_margins,
    is_dolby_only,
    named_transfer,
    track_pixel_shape,
)

BT709 = 1
UNSPECIFIED = 2
PQ = 16
HLG = 18


def entry(*aperture: int, width: int = 320, height: int = 180) -> PictureEntry:
    return PictureEntry(width=width, height=height, aperture=aperture)


def margins_of(entry: PictureEntry) -> Margins:
    return aperture_margins(entry, (entry.width, entry.height))


@pytest.mark.parametrize(
    ("aperture", "margins"),
    [
        ((240, 1, 180, 1, 0, 1, 0, 1), (0, 0, 40, 40)),
        ((240, 1, 160, 1, -40, 1, 10, 1), (20, 0, 0, 80)),
        ((240, 1, 160, 1, 79, 2, -9, 2), (5, 15, 79, 1)),
        ((320, 1, 180, 1, 0, 1, 0, 1), (0, 0, 0, 0)),
    ],
)
def test_an_aperture_cuts_margins_around_its_centre(
    aperture: tuple[int, ...], margins: tuple[int, ...]
) -> None:
    assert margins_of(entry(*aperture)) == margins


def test_a_fractional_aperture_is_rounded() -> None:
    dv = entry(41472, 59, 576, 1, 0, 1, 0, 1, width=720, height=576)
    assert margins_of(dv) == (0, 0, 8, 9)


def test_an_aperture_of_frames_of_another_size_cuts_nothing() -> None:
    imx = entry(704, 1, 480, 1, 0, 1, 0, 1, width=720, height=486)
    assert not any(aperture_margins(imx, (720, 512)))


@pytest.mark.parametrize(
    "aperture",
    [
        (400, 1, 180, 1, 0, 1, 0, 1),
        (240, 1, 180, 1, 100, 1, 0, 1),
        (0, 1, 180, 1, 0, 1, 0, 1),
        (-240, 1, 180, 1, 0, 1, 0, 1),
        (240, 0, 180, 1, 0, 1, 0, 1),
        (240, 1, 180, -1, 0, 1, 0, 1),
    ],
)
def test_an_absurd_aperture_cuts_nothing(aperture: tuple[int, ...]) -> None:
    assert not any(margins_of(entry(*aperture)))


@pytest.mark.parametrize(
    ("track_size", "shape"),
    [
        ((240, 180), 1),
        ((1308, 980), 1),
        ((320, 180), 1),  # left at the size of the frame
        ((480, 180), 2),
        ((0, 0), None),
    ],
)
def test_the_size_of_a_track_is_that_of_its_aperture(
    track_size: tuple[int, int], shape: int | None
) -> None:
    cropped = entry(240, 1, 180, 1, 0, 1, 0, 1)
    expected = None if shape is None else Fraction(shape)
    assert track_pixel_shape(cropped, track_size) == expected


@pytest.mark.parametrize(
    ("transfer", "dolby_vision", "has_hdr_metadata", "named"),
    [
        (UNSPECIFIED, None, False, UNSPECIFIED),
        (UNSPECIFIED, None, True, PQ),
        (UNSPECIFIED, (8, 1), False, PQ),
        (UNSPECIFIED, (7, 6), False, PQ),
        (UNSPECIFIED, (8, 4), True, HLG),
        (UNSPECIFIED, (8, 2), False, UNSPECIFIED),
        (BT709, (8, 2), True, BT709),
        (HLG, None, True, HLG),
    ],
)
def test_a_file_is_hdr_when_something_says_so(
    transfer: int, dolby_vision: tuple[int, int] | None, has_hdr_metadata: bool, named: int
) -> None:
    curve = named_transfer(transfer, dolby_vision=dolby_vision, has_hdr_metadata=has_hdr_metadata)
    assert curve == named


def test_only_some_profiles_of_dolby_vision_have_no_other_base_layer() -> None:
    compatible = [None, (4, 2), (7, 6), (7, 0), (8, 1), (8, 4), (10, 1), (10, 4)]
    assert not any(map(is_dolby_only, compatible))
    assert all(map(is_dolby_only, [(5, 0), (5, 1), (10, 0), (20, 0)]))
