"""A first pass writes playable renditions, a poster, and nothing else."""

from pathlib import Path

import av
import pytest
from media_recipes import lavfi
from published import FolderSink, Studio, playlist, transcode

from portal.transcoding.encoding.pictures import POSTER_NAME


async def test_progress_follows_the_film_and_its_playlists_come_last(
    plain: Path, sink: FolderSink, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.transcoding.encoding.command._PROGRESS_PERIOD_S", 0.05)
    written_s: list[float] = []

    async def remember(seconds: float) -> None:
        written_s.append(seconds)

    result = await transcode(plain, sink=sink, work_dir=work_dir, on_progress=remember)
    assert written_s == sorted(written_s)
    assert written_s[-1] == pytest.approx(result.output.duration_s, abs=0.2)
    assert any(1 < seconds < result.output.duration_s - 1 for seconds in written_s)

    listed = playlist(sink.folder, "240p").segments
    assert len(listed) == 3
    assert all(4 <= segment.duration_s <= 4.1 for segment in listed[:-1])
    stored = sink.names
    assert len(stored) == len(set(stored))
    for name in ("240p", "360p", "audio"):
        own = [file for file in stored if file.startswith(f"{name}/") and file.endswith(".m4s")]
        uris = [segment.uri for segment in playlist(sink.folder, name).segments]
        assert sorted(own) == [f"{name}/{uri}" for uri in uris]
        finished_at = stored.index(f"{name}/playlist.m3u8")
        assert all(stored.index(file) < finished_at for file in own)


async def test_the_poster_is_a_picture_and_not_the_black_lead(studio: Studio) -> None:
    source = studio.make(
        "black lead.mp4",
        *lavfi("color=black:s=320x180:r=25:d=2", "testsrc2=s=320x180:r=25:d=4"),
        *("-filter_complex", "[0][1]concat", "-pix_fmt", "yuv420p"),
    )
    published = await studio.publish(source)
    assert published.result.has_poster
    with av.open(str(published.folder / POSTER_NAME)) as container:
        frame = next(container.decode(video=0))
    assert (frame.width, frame.height) == (320, 180)
    assert max(bytes(frame.planes[0])) > 200, "no brighter than black"
