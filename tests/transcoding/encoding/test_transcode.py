"""A whole first pass with real media: what is written plays, and nothing else is left behind."""

from pathlib import Path

import av
import pytest
from media_recipes import MakeMedia
from published import (
    FolderSink,
    Publish,
    playlist,
    transcode,
)
from published_checks import check_published

from portal.transcoding.encoding.posters import POSTER_NAME
from portal.transcoding.encoding.progress import Stage
from portal.transcoding.packaging.master import MASTER_NAME


async def test_a_plain_source_is_cut_into_four_seconds_and_a_rest(
    plain: Path, publish: Publish
) -> None:
    published = await publish(plain)
    lengths_s = [segment.duration_s for segment in playlist(published.folder, "240p").segments]
    assert len(lengths_s) == 3
    assert all(4 <= length_s <= 4.1 for length_s in lengths_s[:-1])
    check_published(published)


async def test_playlists_come_after_what_they_name(plain: Path, publish: Publish) -> None:
    published = await publish(plain)
    result, sink = published.result, published.sink
    assert len(sink.names) == len(set(sink.names))
    master = (sink.folder / MASTER_NAME).read_text()
    named = [line for line in master.splitlines() if not line.startswith("#")]
    assert sorted(named) == ["240p/playlist.m3u8", "360p/playlist.m3u8"]
    assert 'URI="audio/playlist.m3u8"' in master
    assert 'CODECS="avc1.64' in master
    for rendition in ("240p", "360p", "audio"):
        listed = [
            f"{rendition}/{segment.uri}" for segment in playlist(sink.folder, rendition).segments
        ]
        written = [name for name in sink.names if name.startswith(f"{rendition}/")]
        assert sorted(name for name in written if name.endswith(".m4s")) == sorted(listed)
        finished_at = sink.names.index(f"{rendition}/playlist.m3u8")
        assert all(sink.names.index(name) < finished_at for name in listed)
    on_disk = sum(path.stat().st_size for path in sink.folder.glob("*/*"))
    assert sum(rendition.size_bytes for rendition in result.output.renditions) == on_disk


async def test_progress_never_falls_and_ends_at_100(
    plain: Path, sink: FolderSink, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.transcoding.encoding.command._PROGRESS_PERIOD_S", 0.05)
    reports: list[tuple[Stage, float]] = []

    async def remember(stage: Stage, percent: float, seconds_left: float | None) -> None:
        reports.append((stage, percent))

    await transcode(str(plain), sink=sink, work_dir=work_dir, on_progress=remember)
    percents = [percent for _, percent in reports]
    assert percents == sorted(percents)
    assert percents[-1] == 100.0
    stages = list(dict.fromkeys(stage for stage, _ in reports))
    assert stages == [Stage.TRANSCODING, Stage.FINISHING]
    assert any(1 < percent < 97 for percent in percents)


async def test_the_poster_is_a_picture_and_not_the_black_lead(
    make_media: MakeMedia, publish: Publish
) -> None:
    source = make_media(
        "black lead.mp4",
        *("-f", "lavfi", "-i", "color=black:s=640x360:r=25:d=2"),
        *("-f", "lavfi", "-i", "testsrc2=s=640x360:r=25:d=4"),
        *("-filter_complex", "[0][1]concat", "-pix_fmt", "yuv420p"),
    )
    published = await publish(source)
    assert published.result.output.has_poster
    with av.open(str(published.folder / POSTER_NAME)) as container:
        frame = next(container.decode(video=0))
    assert (frame.width, frame.height) == (640, 360)
    assert max(bytes(frame.planes[0])) > 200, "no brighter than black"
