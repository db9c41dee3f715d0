"""A whole first pass with real media: what is written plays, and nothing else is left behind."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import pytest
from media_recipes import MakeMedia
from published import (
    FolderSink,
    Publish,
    Reports,
    files_in,
    frames,
    playlist,
    transcode,
)

from portal.transcoding.encoding.posters import POSTER_NAME
from portal.transcoding.encoding.progress import Stage
from portal.transcoding.packaging.master import MASTER_NAME


async def test_all_renditions_play_and_switch_at_the_same_instants(
    plain: Path, publish: Publish
) -> None:
    published = await publish(plain)
    folder, renditions = published.folder, published.result.renditions
    assert [rendition.name for rendition in renditions] == ["240p", "360p"]
    reference = [segment.duration_s for segment in playlist(folder, "240p").segments]
    assert len(reference) == 3
    assert sum(reference) == pytest.approx(10, abs=0.1)
    for rendition in renditions:
        written = playlist(folder, rendition.name)
        assert [segment.duration_s for segment in written.segments] == reference
        assert all(4 <= segment.duration_s <= 6 for segment in written.segments[:-1])
        for number in range(len(reference)):
            first = frames(folder, rendition.name, number)[0]
            assert (first.width, first.height) == (rendition.width, rendition.height)
            assert first.key_frame
            assert first.time == pytest.approx(sum(reference[:number]), abs=0.001)
    samples = sum(frame.samples for frame in frames(folder, "audio"))
    assert samples == pytest.approx(10 * 48000, rel=0.01)


async def test_picture_and_sound_begin_together(plain: Path, publish: Publish) -> None:
    folder = (await publish(plain)).folder
    assert frames(folder, "240p", 0)[0].time == pytest.approx(0, abs=0.001)
    # The encoder's priming samples come before zero and are skipped.
    assert frames(folder, "audio", 0)[0].time == pytest.approx(0, abs=0.022)


async def test_the_rate_of_29_97_stays_exact(plain: Path, publish: Publish) -> None:
    published = await publish(plain)
    rates = {rendition.fps for rendition in published.result.renditions}
    assert rates == {Fraction(30000, 1001)}
    decoded = frames(published.folder, "240p")
    assert len(decoded) == 300
    gaps = {(b.pts - a.pts) * b.time_base for a, b in pairwise(decoded)}
    assert gaps == {Fraction(1001, 30000)}


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
    on_disk = sum(
        path.stat().st_size for path in files_in(sink.folder) if path.parent != sink.folder
    )
    assert sum(rendition.size_bytes for rendition in result.output.renditions) == on_disk


async def test_progress_never_falls_and_ends_at_100(
    plain: Path, sink: FolderSink, work_dir: Path, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.transcoding.encoding.command._PROGRESS_PERIOD_S", 0.05)
    await transcode(str(plain), sink=sink, work_dir=work_dir, on_progress=reports)
    percents = [percent for _, percent, _ in reports.all]
    assert percents == sorted(percents)
    assert percents[-1] == 100.0
    stages = list(dict.fromkeys(stage for stage, _, _ in reports.all))
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


async def test_a_source_without_sound_becomes_a_silent_stream(
    make_video: MakeMedia, publish: Publish
) -> None:
    published = await publish(make_video("mute.mp4", audio_s=0))
    assert not published.result.audio
    assert "AUDIO" not in published.master
    assert not (published.folder / "audio").exists()


@pytest.mark.parametrize(("picture_s", "sound_s"), [(2, 7), (7, 2)])
@pytest.mark.slow
async def test_tracks_of_different_length_are_both_kept(
    make_video: MakeMedia, publish: Publish, picture_s: float, sound_s: float
) -> None:
    source = make_video(f"{picture_s}-{sound_s}.mp4", duration_s=picture_s, audio_s=sound_s)
    published = await publish(source)
    assert playlist(published.folder, "240p").duration_s == pytest.approx(picture_s, abs=0.1)
    assert playlist(published.folder, "audio").duration_s == pytest.approx(sound_s, abs=0.1)
    assert published.result.duration_s == pytest.approx(7, abs=0.1)


async def test_oblong_pixels_become_square_ones(make_video: MakeMedia, publish: Publish) -> None:
    published = await publish(make_video("sar.mp4", "-vf", "setsar=16/11", size="352x288"))
    top = published.result.renditions[-1]
    assert (top.width, top.height) == (512, 288)
    with av.open(str(published.folder / "288p" / "init.mp4"), format="mov") as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (512, 288)
        assert stream.sample_aspect_ratio in (None, 1)


async def test_120_frames_a_second_become_exactly_60(
    make_video: MakeMedia, publish: Publish
) -> None:
    decoded = frames(
        (await publish(make_video("fast.mp4", rate="120", size="320x180"))).folder, "180p"
    )
    assert len(decoded) == 120
    gaps = {(b.pts - a.pts) * b.time_base for a, b in pairwise(decoded)}
    assert gaps == {Fraction(1, 60)}
