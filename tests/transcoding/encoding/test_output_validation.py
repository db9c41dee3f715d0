"""The check of what was written finds what is missing, empty, short or out of step."""

from pathlib import Path

import pytest
from published import Published, playlist

from portal.transcoding.encoding.output_validation import (
    check_aligned,
    check_duration,
    check_stored,
)
from portal.transcoding.errors import FailCode, RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.packaging.hls import MediaPlaylist

FRAME_S = 1001 / 30000


@pytest.fixture
async def published(plain: Path, publish: object) -> Published:
    return await publish(plain)


@pytest.fixture
def written(published: Published) -> MediaPlaylist:
    return playlist(published.folder, "240p")


@pytest.fixture
def sizes_bytes(published: Published) -> dict[str, int]:
    return {
        str(path.relative_to(published.folder)): path.stat().st_size
        for path in published.folder.rglob("*")
        if path.suffix in {".m4s", ".mp4"}
    }


@pytest.mark.parametrize(
    ("name", "size_bytes"),
    [
        pytest.param("240p/00001.m4s", 0, id="an empty segment"),
        pytest.param("240p/init.mp4", 0, id="an empty init segment"),
        pytest.param("240p/00009.m4s", 5, id="a segment too many"),
        pytest.param("240p/00002.m4s", None, id="a segment never stored"),
        pytest.param("240p/init.mp4", None, id="an init segment never stored"),
    ],
)
def test_what_is_empty_unnamed_or_missing_is_found(
    written: MediaPlaylist, sizes_bytes: dict[str, int], name: str, size_bytes: int | None
) -> None:
    changed = {**sizes_bytes, name: size_bytes}
    stored = {name: size for name, size in changed.items() if size is not None}
    with pytest.raises(TranscodeFailed, match=FailCode.OUTPUT_INCOMPLETE) as caught:
        check_stored("240p", written, stored)
    assert name in caught.value.detail


def test_segments_may_begin_a_frame_apart_and_no_more(written: MediaPlaylist) -> None:
    starts_s = written.starts_s
    check_aligned("240p", written, starts_s, frame_s=FRAME_S)
    check_aligned("240p", written, [at + FRAME_S for at in starts_s], frame_s=FRAME_S)
    for other in ([at + 2 * FRAME_S for at in starts_s], starts_s[:-1], (*starts_s, 12.0)):
        with pytest.raises(TranscodeFailed, match="incomplete") as caught:
            check_aligned("240p", written, other, frame_s=FRAME_S)
        assert "begin at other times" in caught.value.detail


def test_much_less_than_the_source_claims_is_damage(published: Published) -> None:
    source = published.result.source
    check_duration(10.0, source)
    check_duration(9.2, source)
    with pytest.raises(SourceRejected, match=RejectCode.DAMAGED):
        check_duration(5.0, source)
