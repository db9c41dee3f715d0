"""Repacking of other containers, and of sound, before a file is sent."""

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import av
import pytest
from front_end import run_node
from numbered_film import make_numbered, shown_numbers
from running_portal import run_ffmpeg

from portal.client import PortalFailure
from portal.client.repack import DEMUXERS, repacked
from portal.transcoding.encoding import ffmpeg

AAC = ("-c:a", "aac")
MPEG_2 = ("-c:v", "mpeg2video", "-s", "720x576")
# Options of the source by its name, and the sentence about it. Each has three seconds.
FILMS = {
    "film.mkv": (("-bf", "3", "-c:a", "flac"), "Matroska"),
    "film.webm": (("-c:v", "libvpx-vp9", "-deadline", "realtime", "-c:a", "libopus"), "WebM"),
    "film.ts": (("-bf", "3", *AAC), "MPEG-TS"),
    "film.m2ts": (("-bf", "2", "-c:a", "ac3"), "MPEG-TS"),
    "film.avi": (("-c:v", "mpeg4", "-bf", "2", "-c:a", "mp3"), "AVI"),
    "film.flv": (("-bf", "2", *AAC), "FLV"),
    "film.mxf": ((*MPEG_2, "-bf", "2", "-c:a", "pcm_s24le"), "MXF"),
    "film.mpg": ((*MPEG_2, "-bf", "2", "-c:a", "mp2"), "MPEG-PS"),
    "uncompressed.mkv": (
        ("-c:v", "prores", "-pix_fmt", "yuv422p10le", "-c:a", "pcm_u8"),
        "Matroska",
    ),
}
SOUNDS = ("sound.mp3", "sound.m4a", "sound.wav", "sound.flac", "sound.ogg", "sound.opus")
# Prints the formats that the upload page knows, by extension.
LIST_FORMATS = """
    import { EXTENSIONS } from "./src/preflight/containers.js";
    console.log(JSON.stringify(EXTENSIONS));
"""
Repack = Callable[[Path], Any]


class Repacked(NamedTuple):
    file: Path
    note: str


@pytest.fixture
def repack(tmp_path: Path) -> Repack:
    """Repack a file, and keep the result."""

    async def run(source: Path) -> Repacked:
        async with repacked(source, on_repacked=lambda done, total: None) as ready:
            (folder := tmp_path / "kept").mkdir(exist_ok=True)
            return Repacked(Path(shutil.copy(ready.file, folder)), ready.note)

    return run


def frames(path: Path) -> list[tuple[Fraction, bytes]]:
    """Return the pictures of a film by their times."""
    with av.open(str(path)) as container:
        return [
            (frame.pts * frame.time_base, frame.to_ndarray().tobytes())
            for frame in container.decode(video=0)
        ]


def sound(path: Path) -> tuple[Fraction, bytes]:
    """Return the packets of the sound, joined because PCM has any number, and when they begin."""
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(audio=0) if packet.size]
        return packets[0].pts * packets[0].time_base, b"".join(map(bytes, packets))


@pytest.mark.parametrize("name", FILMS)
async def test_a_film_keeps_its_frames_its_sound_and_their_times(
    tmp_path: Path, repack: Repack, name: str
) -> None:
    options, container = FILMS[name]
    source = make_numbered(tmp_path / name, *options, seconds=3)
    ready = await repack(source)
    assert ready.note == f"Repacked from {container}; nothing is lost."
    assert ready.file.name == f"{source.stem}{'.mov' if source.stem == 'uncompressed' else '.mp4'}"
    before = frames(source)
    after = frames(ready.file)
    assert [pixels for _, pixels in after] == [pixels for _, pixels in before]
    heard_before_s, packets_before = sound(source)
    heard_s, packets = sound(ready.file)
    assert packets == packets_before or source.suffix == ".ts"  # without their headers
    # Some containers don't begin at zero. Times of sound may be whole milliseconds.
    shift_s = before[0][0] - after[0][0]
    assert [at - shift_s for at, _ in before] == [at for at, _ in after]
    assert abs(heard_before_s - shift_s - heard_s) < Fraction(1, 1000)


async def test_chapters_languages_titles_and_text_come_along_and_bytes_are_the_same(
    tmp_path: Path, repack: Repack
) -> None:
    (tmp_path / "text.srt").write_text("1\n00:00:00,500 --> 00:00:01,500\nHello, “you”\n")
    (tmp_path / "chapters.txt").write_text(
        ";FFMETADATA1\ntitle=Two chapters\n"
        "[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=1000\ntitle=One\n"
        "[CHAPTER]\nTIMEBASE=1/1000\nSTART=1000\nEND=3000\ntitle=Two\n"
    )
    film = make_numbered(tmp_path / "film.mp4", *AAC, seconds=3, sounds=2)
    source = run_ffmpeg(
        tmp_path / "film.mkv",
        *("-i", str(film), "-i", str(tmp_path / "text.srt"), "-i", str(tmp_path / "chapters.txt")),
        *("-map", "0", "-map", "1", "-map", "1", "-map_metadata", "2", "-c", "copy"),
        *("-c:s:1", "dvdsub", "-c:s:1", "ass"),
        *("-metadata:s:a:0", "language=deu", "-metadata:s:a:0", "title=Kommentar"),
        *("-metadata:s:a:1", "language=fra", "-metadata:s:s:0", "language=eng"),
    )
    ready = await repack(source)
    with av.open(str(ready.file)) as container:
        assert [stream.language for stream in container.streams.audio] == ["deu", "fra"]
        assert "Kommentar" in container.streams.audio[0].metadata.values()
        assert container.streams.subtitles[0].language == "eng"
        cues = [
            bytes(packet)[2:].decode() for packet in container.demux(subtitles=0) if packet.size
        ]
        assert "Hello, “you”" in cues
        chapters = container.chapters()
        assert [chapter["metadata"]["title"] for chapter in chapters] == ["One", "Two"]
        assert container.metadata["title"] == "Two chapters"
    first = ready.file.read_bytes()
    assert (await repack(source)).file.read_bytes() == first


async def test_subtitles_that_are_pictures_are_left_out_and_told(
    tmp_path: Path, repack: Repack
) -> None:
    film = make_numbered(tmp_path / "film.ts", *AAC, seconds=2)
    # ffmpeg makes bitmap subtitles of bitmap subtitles only, so a track is declared without any.
    with av.open(str(film)) as source, av.open(str(tmp_path / "film.mkv"), "w") as target:
        streams = {s.index: target.add_stream_from_template(s) for s in source.streams}
        target.add_stream("dvdsub").codec_context.open(strict=False)
        for packet in source.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream_index]
                target.mux(packet)
    ready = await repack(tmp_path / "film.mkv")
    assert ready.note == "Repacked from Matroska, without 1 subtitle track(s) that are no text."
    assert shown_numbers(ready.file) == [*range(50)]


@pytest.mark.parametrize("name", SOUNDS)
async def test_sound_becomes_a_film_that_lasts_as_long(
    tmp_path: Path, repack: Repack, name: str
) -> None:
    source = run_ffmpeg(tmp_path / name, "-f", "lavfi", "-i", "sine=duration=9.5:sample_rate=48000")
    ready = await repack(source)
    assert ready.file.name == "sound.mp4"
    assert sound(ready.file)[1] == sound(source)[1]
    # The last second may be incomplete.
    assert [at for at, _ in frames(ready.file)] == [*range(9)]


async def test_picture_of_sound_is_its_cover_or_its_title(tmp_path: Path, repack: Repack) -> None:
    tone = ("-f", "lavfi", "-i", "sine=duration=2")
    red = run_ffmpeg(
        tmp_path / "red.png", "-f", "lavfi", "-i", "color=red:s=301x200", "-frames:v", "1"
    )
    art = ("-i", str(red), "-map", "0", "-map", "1", "-disposition:v", "attached_pic")
    source = run_ffmpeg(tmp_path / "song.mp3", *tone, *art)
    with av.open(str((await repack(source)).file)) as container:
        frame = next(container.decode(video=0))
        assert (frame.width, frame.height) == (1280, 850)
        red_pixel = frame.to_ndarray(format="rgb24")[400, 600]
        assert red_pixel[0] > 200 > 60 > red_pixel[1]
    # The title is whatever someone typed.
    named = run_ffmpeg(tmp_path / "b.mp3", *tone, "-metadata", "title=100% of 'it': %{n}\\[a];")
    plain = run_ffmpeg(tmp_path / "c.mp3", *tone, "-metadata", "title=.")
    pixels = [frames((await repack(each)).file)[0][1] for each in (named, plain)]
    assert pixels[0] != pixels[1]


@pytest.mark.parametrize(
    ("options", "codecs"),
    [
        (("-c:v", "wmv2", "-c:a", "wmav2"), "wmav2 and wmv2"),
        # QuickTime carries it, but the portal doesn't decode it.
        (("-c:v", "cinepak", "-c:a", "aac"), "cinepak"),
    ],
)
async def test_codecs_that_the_portal_does_not_take_are_named_with_a_remedy(
    tmp_path: Path, repack: Repack, options: tuple[str, ...], codecs: str
) -> None:
    source = make_numbered(tmp_path / "film.mkv", *options, seconds=1)
    with pytest.raises(PortalFailure, match=f"film.mkv contains {codecs}, .* HandBrake"):
        await repack(source)


@pytest.mark.parametrize("content", ["", "no media", "ffconcat version 1.0\nfile secret.mkv\n"])
async def test_files_that_hold_no_media_themselves_are_refused(
    tmp_path: Path, repack: Repack, content: str
) -> None:
    make_numbered(tmp_path / "secret.mkv", *AAC, seconds=1)
    (source := tmp_path / "film.mkv").write_text(content)
    with pytest.raises(PortalFailure, match="can't be read"):
        await repack(source)


async def test_a_playlist_names_no_other_file(tmp_path: Path, repack: Repack) -> None:
    make_numbered(tmp_path / "secret.ts", *AAC, seconds=1)
    (source := tmp_path / "film.ts").write_text(
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nsecret.ts\n#EXT-X-ENDLIST\n"
    )
    with pytest.raises(PortalFailure, match="can't be read"):
        await repack(source)


async def test_lack_of_space_is_told_before_anything_is_written(
    tmp_path: Path, repack: Repack, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_numbered(tmp_path / "film.mkv", *AAC, seconds=1)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(PortalFailure, match=r"needs 0\.1 GB of free space in .* Set TMPDIR"):
        await repack(source)


async def test_truncated_and_odd_names_are_repacked(tmp_path: Path, repack: Repack) -> None:
    film = make_numbered(tmp_path / "film.mkv", *AAC, seconds=3)
    content = film.read_bytes()
    (odd := tmp_path / "a:b %d 'ü'\n.mkv").write_bytes(content[: len(content) // 2])
    ready = await repack(odd)
    assert ready.file.name == "a:b %d 'ü'\n.mp4"
    assert len(shown_numbers(ready.file)) > 10


async def test_temporary_file_is_removed_after_a_failure(
    tmp_path: Path, repack: Repack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(folder := tmp_path / "temporary"))
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(ffmpeg, "ffmpeg_path", lambda: "/bin/false")
    with pytest.raises(PortalFailure, match="can't be repacked"):
        await repack(make_numbered(tmp_path / "film.mkv", *AAC, seconds=1))
    assert [*folder.iterdir()] == []


def test_files_that_the_upload_page_knows_are_read(tmp_path: Path) -> None:
    formats = json.loads(run_node("--input-type=module", "--eval", LIST_FORMATS))
    for extension, container in formats.items():
        name = "testsrc=s=176x144:r=25" if container["kind"] == "video" else "sine=r=48000"
        # FFmpeg's encoders of some formats are experimental.
        options = ("-f", "lavfi", "-i", name, "-t", "0.2", "-strict", "-2")
        file = run_ffmpeg(tmp_path / f"file.{extension}", *options)
        with av.open(str(file), options={"format_whitelist": DEMUXERS}) as opened:
            assert [track.type for track in opened.streams] == [container["kind"]], extension
