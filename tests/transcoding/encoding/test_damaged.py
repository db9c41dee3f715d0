"""A source with a small hole is published with a note; one with large holes is refused."""

from pathlib import Path

import av
import pytest
from media_recipes import COPYABLE, MakeMedia, make_card
from published import FolderSink, Write, make_pass, shown, transcode
from published_checks import check_hls

from portal.transcoding.errors import CopyUndeliverable, Note, RejectCode, SourceRejected
from portal.transcoding.packaging.master import MASTER_NAME


@pytest.fixture
def undamaged(make_video: MakeMedia) -> Path:
    """Twenty seconds with a key frame every second; 4:2:2 can't be copied."""
    options = ("-g", "25", "-b:v", "300k", "-pix_fmt", "yuv422p")
    return make_video("twenty.mp4", *options, size="320x180", rate="25", duration_s=20)


def with_a_hole(source: Path, *, share: float) -> bytes:
    """Return the content of a file with zeros in the middle of its media data."""
    content = bytearray(source.read_bytes())
    start = content.index(b"mdat") + 4
    end = content.index(b"moov") - 4
    middle = (start + end) // 2
    half = int((end - start) * share / 2)
    content[middle - half : middle + half] = bytes(2 * half)
    return bytes(content)


async def test_a_source_with_a_small_hole_is_published_with_a_note(
    undamaged: Path, sink: FolderSink, work_dir: Path, write: Write
) -> None:
    source = write(with_a_hole(undamaged, share=0.03))

    result = await transcode(source, sink=sink, work_dir=work_dir)

    assert Note.PARTLY_DAMAGED in result.output.notes
    check_hls(sink.folder, result.output)
    for rendition in result.renditions:
        pictures = shown(sink.folder, rendition.name)  # strict: no fault is passed on to viewers
        assert pictures[-1].time_s == pytest.approx(20, abs=0.1)
        assert len(pictures) > 0.9 * 500


async def test_a_source_that_is_mostly_holes_is_refused(
    undamaged: Path, sink: FolderSink, work_dir: Path, write: Write
) -> None:
    source = write(with_a_hole(undamaged, share=0.7))

    with pytest.raises(SourceRejected, match=RejectCode.DAMAGED):
        await transcode(source, sink=sink, work_dir=work_dir)
    assert MASTER_NAME not in sink.names


async def test_a_copy_whose_beginning_does_not_decode_is_undeliverable(
    make_media: MakeMedia, sink: FolderSink, work_dir: Path, write: Write
) -> None:
    whole = make_card(make_media, "copyable.mp4", *COPYABLE)
    with av.open(str(whole)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    damaged = next(packet for packet in packets[5:] if packet.size > 400)
    content = bytearray(whole.read_bytes())
    inside = slice(damaged.pos + 100, damaged.pos + 300)
    content[inside] = bytes(byte ^ 0x55 for byte in content[inside])

    with pytest.raises(CopyUndeliverable, match="undecodable"):
        await make_pass(write(content), wanted=["306p"], sink=sink, work_dir=work_dir)
