"""Facts of segments, compared with a full decode."""

import struct

import pytest
from media_recipes import MakeMedia
from published import Publish, frames, playlist

from portal.transcoding.packaging.cmaf import SegmentError, inspect_segment


async def test_facts_agree_with_the_decoder_and_half_a_header_is_refused(
    make_video: MakeMedia, publish: Publish
) -> None:
    folder = (await publish(make_video("facts.mp4", size="96x64", duration_s=5))).folder
    for number, segment in enumerate(playlist(folder, "64p").segments):
        content = (folder / "64p" / segment.uri).read_bytes()
        facts = inspect_segment(content)
        assert facts.sample_count == len(frames(folder, "64p", number))
        assert facts.is_closed
        assert 0 < facts.key_size_bytes < len(content)
    (header_bytes,) = struct.unpack_from(">I", content, content.index(b"moof") - 4)
    for length in range(0, content.index(b"moof") - 4 + header_bytes, 7):
        with pytest.raises(SegmentError):
            inspect_segment(content[:length])


def test_an_open_group_of_pictures_is_not_closed(make_media: MakeMedia) -> None:
    params = "open-gop=1:bframes=3:b-adapt=0:scenecut=0:keyint=10:min-keyint=10"
    film = make_media(
        "open fragments.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=64x64:r=10:d=3", "-c:v", "libx264"),
        *("-x264-params", params, "-pix_fmt", "yuv420p"),
        *("-movflags", "frag_keyframe+empty_moov+default_base_moof"),
    ).read_bytes()
    starts = [at for at in range(len(film)) if film[at + 4 : at + 8] == b"moof"]
    segments = [film[a:b] for a, b in zip(starts, [*starts[1:], len(film)], strict=True)]
    assert [inspect_segment(segment).is_closed for segment in segments] == [True, False, False]
