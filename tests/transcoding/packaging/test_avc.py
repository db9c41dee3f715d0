"""Init segments that can't be joined are refused."""

import pytest
from media_recipes import MakeMedia

from portal.transcoding.packaging.avc import shared_init
from portal.transcoding.packaging.cmaf import SegmentError


def encoded(make_media: MakeMedia, *options: str) -> bytes:
    """Return an init segment."""
    film = make_media(
        "encoded.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=96x64:r=5:d=1", "-c:v", "libx264", *options),
        *("-pix_fmt", "yuv420p"),
        *("-movflags", "frag_keyframe+empty_moov+default_base_moof"),
    ).read_bytes()
    return film[: film.index(b"moof") - 4]


def test_init_segments_of_other_lengths_or_with_the_same_number_are_refused(
    make_media: MakeMedia,
) -> None:
    inits = [encoded(make_media, "-level:v", level) for level in ("3", "4")]
    with pytest.raises(SegmentError, match="number 0"):
        shared_init(inits)
    other = bytearray(inits[0])
    other[other.index(b"avcC") + 8] ^= 1
    with pytest.raises(SegmentError, match="lengths"):
        shared_init([inits[0], bytes(other)])
