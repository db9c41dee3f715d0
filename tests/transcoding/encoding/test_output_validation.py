"""Validation finds missing, empty, short and misaligned output."""

from dataclasses import replace

import pytest
from probes import a_probe

from portal.transcoding.encoding.ffmpeg import RunReport
from portal.transcoding.encoding.output_validation import (
    check_aligned,
    check_complete,
    check_copy,
    check_duration,
    check_frames,
)
from portal.transcoding.encoding.parts import Rendition
from portal.transcoding.encoding.parts import Segment as StoredSegment
from portal.transcoding.errors import (
    CopyUndeliverable,
    FailCode,
    RejectCode,
    SourceRejected,
    TranscodeFailed,
)
from portal.transcoding.packaging.cmaf import SegmentFacts
from portal.transcoding.packaging.hls import MediaPlaylist, Segment

SEGMENTS = tuple(Segment(uri=f"0000{n}.m4s", duration_s=4.0) for n in range(3))
WRITTEN = MediaPlaylist(segments=SEGMENTS, map_uri="init.mp4", target_duration_s=4, complete=True)

# Ten seconds of 30 fps, which are the frames of two of these segments.
SOURCE = a_probe(640, 360)
FACTS = SegmentFacts(
    sample_count=150, key_size_bytes=1, from_ticks=0, last_ticks=1, until_ticks=2, is_closed=True
)


def stored(*numbers: int, size_bytes: int = 5) -> dict[str, Rendition]:
    """Return a rendition with these segments."""
    segments = tuple(
        StoredSegment(
            number=number, uri=f"{number}.m4s", size_bytes=size_bytes, duration_s=4.0, facts=FACTS
        )
        for number in numbers
    )
    return {"240p": Rendition(init=b"", segments=segments)}


def test_a_segment_that_is_missing_or_empty_is_found() -> None:
    check_complete(stored(0, 1), ["240p"])
    for numbers in ([], [1], [0, 2], [0, 1, 1]):
        with pytest.raises(TranscodeFailed, match=FailCode.OUTPUT_INCOMPLETE):
            check_complete(stored(*numbers), ["240p"])
    with pytest.raises(TranscodeFailed, match=FailCode.OUTPUT_INCOMPLETE):
        check_complete({}, ["240p"])
    with pytest.raises(TranscodeFailed) as caught:
        check_complete(stored(0, 1, size_bytes=0), ["240p"])
    assert "240p/0.m4s" in caught.value.detail


def test_segments_may_begin_a_frame_apart_and_no_more() -> None:
    check_aligned("240p", WRITTEN, [0, 4.04, 8.04], frame_s=0.04)
    for other in ([0, 4, 8.08], [0, 4], [0, 4, 8, 12]):
        with pytest.raises(TranscodeFailed, match=FailCode.OUTPUT_INCOMPLETE):
            check_aligned("240p", WRITTEN, other, frame_s=0.04)


def test_a_picture_much_shorter_than_its_source_is_damage() -> None:
    check_duration(9.2, 10.0)
    with pytest.raises(SourceRejected, match=RejectCode.DAMAGED):
        check_duration(8.9, 10.0)


def test_missing_frames_are_damage() -> None:
    count = SOURCE.video.frame_count or 0
    check_frames(SOURCE, RunReport(frames_decoded=count - 10, decode_errors=5))
    check_frames(SOURCE, RunReport())
    with pytest.raises(SourceRejected, match=RejectCode.DAMAGED):
        check_frames(SOURCE, RunReport(frames_decoded=count // 2))


def test_a_copy_has_all_frames_and_closed_segments() -> None:
    check_copy([FACTS, FACTS], SOURCE)
    for segments, reason in (
        ([FACTS], "frames_missing"),
        ([FACTS, replace(FACTS, is_closed=False)], "open_segment"),
    ):
        with pytest.raises(CopyUndeliverable, match=reason):
            check_copy(segments, SOURCE)
