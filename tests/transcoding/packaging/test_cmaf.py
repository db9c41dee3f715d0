"""Segments and init segments are read for what they are, by comparison with a full decode."""

import struct
from pathlib import Path

import av
import pytest
from media_recipes import MakeMedia
from published import PublishCard, playlist, shown

from portal.transcoding.packaging.cmaf import SegmentError, inspect_segment


@pytest.fixture
async def folder(publish_card: PublishCard) -> Path:
    return (await publish_card("card.mp4")).folder


def fragments(content: bytes) -> list[bytes]:
    """The fragments of a film, each with its media."""
    starts = [at for at in range(len(content)) if content[at + 4 : at + 8] == b"moof"]
    return [content[a:b] for a, b in zip(starts, [*starts[1:], len(content)], strict=True)]


async def test_facts_agree_with_the_decoder(folder: Path) -> None:
    for name in ("240p", "306p"):
        for number, segment in enumerate(playlist(folder, name).segments):
            content = (folder / name / segment.uri).read_bytes()
            facts = inspect_segment(content)
            assert facts.sample_count == len(shown(folder, name, number))
            assert facts.is_closed
            assert 0 < facts.key_size_bytes < len(content)


async def test_the_key_frame_ends_where_it_is_said_to(folder: Path) -> None:
    path = folder / "240p" / "00000.m4s"
    whole = path.read_bytes()
    init = folder / "240p" / "init.mp4"
    joined = folder.parent / "joined.mp4"
    joined.write_bytes(init.read_bytes() + whole)
    with av.open(str(joined), format="mov") as container:
        first = next(packet for packet in container.demux() if packet.size)
        first_end = (first.pos or 0) + first.size - init.stat().st_size
    assert inspect_segment(whole).key_size_bytes == first_end


def test_an_open_group_of_pictures_is_not_closed(make_media: MakeMedia) -> None:
    params = "open-gop=1:bframes=3:b-adapt=0:scenecut=0:keyint=10:min-keyint=10"
    film = make_media(
        "open fragments.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=64x64:r=10:d=3", "-c:v", "libx264"),
        *("-x264-params", params, "-pix_fmt", "yuv420p"),
        *("-movflags", "frag_keyframe+empty_moov+default_base_moof"),
    )
    first, *others = (inspect_segment(segment) for segment in fragments(film.read_bytes()))
    assert first.is_closed
    assert others
    assert not any(each.is_closed for each in others)


async def test_what_is_cut_off_anywhere_in_its_headers_is_refused(folder: Path) -> None:
    whole = (folder / "240p" / "00000.m4s").read_bytes()
    (header_bytes,) = struct.unpack_from(">I", whole, whole.index(b"moof") - 4)
    end = whole.index(b"moof") - 4 + header_bytes
    for length in range(0, end, 7):
        with pytest.raises(SegmentError):
            inspect_segment(whole[:length])
