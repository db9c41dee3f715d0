"""A joined file has exactly the frames, the sound and the times of the stored segments."""

from pathlib import Path

import av
import pytest
from decoded_media import listen, open_media, packets
from media_recipes import COPYABLE, as_yuv, beeps, card, jittering, lavfi
from published import Published, Studio, joined

from portal.transcoding.encoding.joining import StoredTrack, join_tracks
from portal.transcoding.packaging.master import FinishedRendition


def stored_track(published: Published, rendition: FinishedRendition) -> StoredTrack:
    files = published.files(rendition.name)
    return StoredTrack(files=files, language=rendition.language, label=rendition.label)


async def test_joined_files_have_the_frames_and_times_of_the_stream_with_their_index_first(
    studio: Studio, work_dir: Path
) -> None:
    """The film's top is copied, its frames come at uneven times, and it has two sounds."""
    inputs = lavfi(card(), beeps(), "sine=f=500:d=7:r=48000")
    codecs = ("-c:v", "libx264", "-preset", "ultrafast", *COPYABLE, "-c:a", "aac")
    source = studio.make(
        "two sounds.mp4",
        *(*inputs, "-map", "0:v", "-map", "1:a", "-map", "2:a"),
        *("-vf", jittering(as_yuv(), 4000), *codecs),
        *("-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu"),
    )
    published = await studio.publish(source)
    videos = published.result.renditions
    assert [video.copied for video in videos] == [False, True]
    stored_sounds = [stored_track(published, sound) for sound in published.result.audio]

    for number, video in enumerate(videos):
        folder = work_dir / str(number)
        folder.mkdir()
        track = stored_track(published, video)
        path = await join_tracks(track, stored_sounds, title="A = b", folder=folder, timeout_s=60)

        stream = joined(published.folder, video.name)
        assert packets(path) == packets(stream)
        assert [p.length_s for p in packets(path)] == [p.length_s for p in packets(stream)]
        heard = listen(path)
        assert heard.onsets_s() == published.sounds["audio"].onsets_s()
        assert listen(path, 1).frequency_hz(1, 3) == pytest.approx(500, abs=3)
        content = path.read_bytes()
        assert content.index(b"moov") < content.index(b"mdat")
        with av.open(str(path)) as container:
            assert container.metadata["title"] == "A = b"
            tracks = [track.metadata for track in container.streams.audio]
        assert [track["language"] for track in tracks] == ["eng", "deu"]
        assert [track["handler_name"] for track in tracks] == ["English", "German"]

    path = await join_tracks(None, stored_sounds[:1], title="", folder=work_dir, timeout_s=60)
    assert packets(path, "audio") == packets(joined(published.folder, "audio"), "audio")
    with open_media(path) as container:
        assert container.metadata["major_brand"] == "M4A "
