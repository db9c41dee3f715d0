"""Segments of two encoders play with one init segment, if their parameter sets have numbers."""

import pytest
from decoded_media import look
from media_recipes import MakeMedia

from portal.transcoding.packaging.avc import free_number, shared_init
from portal.transcoding.packaging.cmaf import SegmentError


def encoded(make_media: MakeMedia, number: int, *options: str) -> tuple[bytes, bytes]:
    """Return an init segment and a segment of five frames with parameter sets of a number."""
    film = make_media(
        "encoded.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=96x64:r=5:d=1", "-c:v", "libx264", *options),
        *("-pix_fmt", "yuv420p", "-x264-params", f"sps-id={number}"),
        *("-movflags", "frag_keyframe+empty_moov+default_base_moof"),
    ).read_bytes()
    start = film.index(b"moof") - 4
    return film[:start], film[start:]


def test_init_segment_with_all_parameter_sets_decodes_both(make_media: MakeMedia) -> None:
    first = encoded(make_media, 0, "-profile:v", "main", "-bf", "0")
    assert free_number(first[0]) == 1
    second = encoded(make_media, 1, "-profile:v", "high", "-level:v", "4")
    init = shared_init([first[0], second[0]])
    for _, segment in (first, second):
        assert len(look(init + segment)) == 5


def test_different_parameter_sets_with_the_same_number_are_refused(make_media: MakeMedia) -> None:
    inits = [encoded(make_media, 0, "-level:v", level)[0] for level in ("3", "4")]
    with pytest.raises(SegmentError, match="number 0"):
        shared_init(inits)
