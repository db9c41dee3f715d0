"""Data of devices in H.264 is not copied; captions inside of the stream are."""

import struct

import pytest

from portal.transcoding.probing.source import without_user_data

SLICE = b"\x65\x88\x84"
END = b"\x80"
CAPTIONS = bytes((4, 3)) + b"GA9"
# A type or a size of 255 and more has several bytes.
LONG_MESSAGE = b"\xff\x00\xff\x2d" + bytes((1, 2, 3)) * 100
USER_DATA = bytes((5, 20)) + b"sixteen bytes: id" + b"here"[:3]


def sample(*units: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(unit)) + unit for unit in units)


@pytest.mark.parametrize(
    ("unit", "is_kept"),
    [
        (b"\x09\xf0", True),
        (b"\x06" + CAPTIONS + END, True),
        (b"\x06" + LONG_MESSAGE + CAPTIONS + END, True),
        (b"\x06" + USER_DATA + END, False),
        (b"\x06" + CAPTIONS + USER_DATA + END, False),
        (b"\x06" + LONG_MESSAGE + USER_DATA + END, False),
        # The size of the first message doesn't count the byte that prevents a start code.
        (b"\x06\x01\x03\0\0\x03\x01" + USER_DATA + END, False),
        (b"\x06\xff", True),
        (b"\x78of a device", False),
    ],
)
def test_data_of_devices_is_left_out(unit: bytes, is_kept: bool) -> None:
    expected = sample(unit, SLICE) if is_kept else sample(SLICE)
    assert without_user_data(sample(unit, SLICE), 4) == expected


def test_lengths_that_reach_beyond_the_sample_are_an_error() -> None:
    with pytest.raises(ValueError, match="length"):
        without_user_data(sample(SLICE)[:-1], 4)
