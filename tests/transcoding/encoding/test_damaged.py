"""A source with a hole in it: what is left is published, with a word about it, if it is enough."""

from pathlib import Path

import pytest
from media_recipes import MakeMedia
from published import FolderSink, Write, shown, transcode
from published_checks import check_hls

from portal.transcoding.errors import Note, RejectCode, SourceRejected
from portal.transcoding.packaging.master import MASTER_NAME


def with_a_hole(source: Path, *, share: float) -> bytes:
    """Its content with a stretch in the middle of its media data set to zero."""
    content = bytearray(source.read_bytes())
    start = content.index(b"mdat") + 4
    end = content.index(b"moov") - 4
    middle, half = (start + end) // 2, int((end - start) * share / 2)
    content[middle - half : middle + half] = bytes(2 * half)
    return bytes(content)


@pytest.fixture(params=["encoded", pytest.param("copyable", marks=pytest.mark.slow)])
def sound_source(request: pytest.FixtureRequest, make_video: MakeMedia) -> Path:
    """Twenty seconds with a key frame every second; 4:2:2 can't be copied."""
    pix_fmt = "yuv420p" if request.param == "copyable" else "yuv422p"
    options = ("-g", "25", "-b:v", "300k", "-pix_fmt", pix_fmt)
    name = f"twenty {request.param}.mp4"
    return make_video(name, *options, size="320x180", rate="25", duration_s=20)


async def test_a_source_with_a_small_hole_is_published_with_a_note(
    sound_source: Path, sink: FolderSink, work_dir: Path, write: Write
) -> None:
    source = write(with_a_hole(sound_source, share=0.03))

    result = await transcode(str(source), sink=sink, work_dir=work_dir)

    assert Note.PARTLY_DAMAGED in result.notes
    assert (sink.folder / MASTER_NAME).exists()
    check_hls(sink.folder, result.output)
    for rendition in result.renditions:
        pictures = shown(sink.folder, rendition.name)  # strict: no fault is passed on to viewers
        assert pictures[-1].time_s == pytest.approx(20, abs=0.1)
        assert len(pictures) > 0.9 * 500


async def test_a_source_that_is_mostly_holes_is_refused(
    sound_source: Path, sink: FolderSink, work_dir: Path, write: Write
) -> None:
    source = write(with_a_hole(sound_source, share=0.7))

    with pytest.raises(SourceRejected, match=RejectCode.DAMAGED):
        await transcode(str(source), sink=sink, work_dir=work_dir)
    assert MASTER_NAME not in sink.names
