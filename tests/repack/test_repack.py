"""Repacking in the browser's worker: what is sent has the frames of the source, at their times."""

import hashlib
import json
import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from front_end import install_tools, run_node
from numbered_film import FPS, make_numbered, number_in
from published import probe
from running_portal import run_ffmpeg

from portal.transcoding.probing.edits import OPEN_EDITS

SCRIPT = Path(__file__).with_name("repack_file.mjs")
CORPUS = Path(os.environ.get("PORTAL_CORPUS", "no corpus"))
PICTURE = ("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30000/1001:duration=5")
SOUND = ("-f", "lavfi", "-i", "sine=duration=5:sample_rate=44100")
X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "40")
B_FRAMES = (*X264, "-bf", "3", "-x264-params", "open-gop=1:b-pyramid=normal")
ADTS_BYTES = 7
# Edit list with one edit, in 32 bits.
EDIT = re.compile(rb"elst\x00{7}\x01(.{4})", re.DOTALL)
MOVIE_TIMESCALE = 57_600
MICROSECOND = Fraction(1, 1_000_000)
# Containers have no exact times of sound: milliseconds, or those of some packets alone.
STEP = Fraction(1, 2000)
# Files of the corpus, and the containers that can carry their streams.
FILES = {
    "h264_plain/Zulko_moviepy__smpte-2997.mp4": ("mkv", "ts"),
    "h264_plain/mdn_learning-area__rabbit320.mp4": ("mkv", "ts"),
    "h264_plain/sbraz_pymediainfo__sample.mp4": ("mkv", "ts"),
    "vfr/google_ExoPlayer__video_big_buck_bunny.mp4": ("mkv", "ts"),
    "vfr/mapillary_mapillary_tools__sample-5s_h265.mp4": ("mkv", "ts"),
    "vfr/rails_rails__video_with_undefined_display_aspect_ratio.mp4": ("mkv", "ts"),
    "multi_audio/protonemedia_laravel-ffmpeg__video_multi_audio.mp4": ("mkv", "ts"),
    "vp9/google_spatial-media__testsrc_320x240_vp9.mp4": ("mkv", "webm"),
    "vp9/AcademySoftwareFoundation_EncodingGuidelines__test420-test_10_420-vp9.mp4": (
        "mkv",
        "webm",
    ),
    "vp9/AcademySoftwareFoundation_EncodingGuidelines__test420-test_8_420-vp9.mp4": ("mkv", "webm"),
}
FRAGMENTS = ("-movflags", "frag_keyframe+empty_moov")
UNEVEN = ("-vf", "select='mod(n,7)'", "-fps_mode", "vfr")
MADE = {
    "b-frames.mkv": (*PICTURE, *SOUND, *B_FRAMES, "-c:a", "aac"),
    "b-frames.mp4": (*PICTURE, *SOUND, *B_FRAMES, "-c:a", "aac"),
    "b-frames.mov": (*PICTURE, *SOUND, *B_FRAMES, "-c:a", "aac"),
    "fragmented.mp4": (*PICTURE, *SOUND, *X264, "-c:a", "aac", *FRAGMENTS),
    "vfr.mp4": (*PICTURE, *SOUND, *B_FRAMES, "-c:a", "aac", *UNEVEN),
    "b-frames.ts": (*PICTURE, *SOUND, *B_FRAMES, "-c:a", "aac"),
    "b-frames.m2ts": (*PICTURE, *SOUND, *B_FRAMES, "-c:a", "ac3"),
    "late-sound.mkv": (*PICTURE, "-itsoffset", "0.4", *SOUND, *B_FRAMES, "-c:a", "libmp3lame"),
    "vp8.webm": (*PICTURE, *SOUND, "-c:v", "libvpx", "-c:a", "libvorbis"),
    "vp9.webm": (
        *PICTURE,
        *SOUND,
        "-c:v",
        "libvpx-vp9",
        "-deadline",
        "realtime",
        "-c:a",
        "libopus",
    ),
    "av1.mkv": (*PICTURE, *SOUND, "-c:v", "libsvtav1", "-preset", "12", "-c:a", "flac"),
    "hevc.mkv": (
        *PICTURE,
        "-c:v",
        "libx265",
        "-preset",
        "ultrafast",
        "-x265-params",
        "log-level=none",
    ),
    "pcm.mkv": (*PICTURE, *SOUND, *X264, "-c:a", "pcm_s16le"),
    "prores.mkv": (*PICTURE, "-c:v", "prores_ks", "-t", "1"),
}


def repack(source: Path, result: Path, **trim: float) -> dict[str, Any]:
    """Repack a file as the page does."""
    install_tools()
    work = json.dumps([str(source), str(result), trim or None])
    report: dict[str, Any] = json.loads(run_node(str(SCRIPT), work))
    return report


def codec_of(path: Path) -> str:
    with av.open(str(path)) as container:
        return container.streams.video[0].codec.canonical_name


def frames_of(path: Path) -> list[tuple[Fraction, str]]:
    """Return the time and the picture of each frame."""
    with av.open(str(path), options=OPEN_EDITS) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        pictures = [(frame, frame.to_ndarray().tobytes()) for frame in container.decode(stream)]
        return [
            (Fraction(frame.pts) * frame.time_base, hashlib.sha256(picture).hexdigest())
            for frame, picture in pictures
        ]


def sounds_of(path: Path) -> list[list[tuple[Fraction, bytes]]]:
    """Return the time and the bytes, without ADTS header, of each packet of each sound track."""
    with av.open(str(path), options=OPEN_EDITS) as container:
        is_adts = container.format.name == "mpegts"
        tracks: dict[int, list[tuple[Fraction, bytes]]] = {}
        for packet in container.demux(container.streams.audio):
            if not packet.size:
                continue
            header = ADTS_BYTES if is_adts and packet.stream.codec.name == "aac" else 0
            at = Fraction(packet.pts) * packet.time_base
            tracks.setdefault(packet.stream.index, []).append((at, bytes(packet)[header:]))
        return list(tracks.values())


def check_same(source: Path, result: Path) -> None:
    """Compare frames to the microsecond, and sound in step with the first of them."""
    frames = frames_of(source)
    copied_frames = frames_of(result)
    first = frames[0][0]
    copied_first = copied_frames[0][0]
    assert _in_microseconds(copied_frames, copied_first) == _in_microseconds(frames, first)
    sounds = sounds_of(source)
    copied_sounds = sounds_of(result)
    assert len(copied_sounds) == len(sounds)
    for sound, copied in zip(sounds, copied_sounds, strict=True):
        assert [packet for _, packet in copied] == [packet for _, packet in sound]
        drifts = [
            abs((at - first) - (copied_at - copied_first))
            for (at, _), (copied_at, _) in zip(sound, copied, strict=True)
        ]
        assert max(drifts) <= STEP


def _in_microseconds(frames: list[tuple[Fraction, str]], first: Fraction) -> list[tuple[int, str]]:
    return [(round((at - first) * 1_000_000), picture) for at, picture in frames]


@pytest.mark.parametrize("name", [name for name in MADE if not name.endswith(("mp4", "mov"))])
async def test_frames_of_made_files_are_kept_and_the_portal_takes_them(
    name: str, tmp_path: Path
) -> None:
    source = run_ffmpeg(tmp_path / name, *MADE[name])
    result = tmp_path / "result.mp4"
    assert repack(source, result)["failure"] == ""
    check_same(source, result)
    assert (await probe(result)).video.codec == codec_of(source)


@pytest.mark.parametrize(
    ("name", "start_s", "end_s"),
    [
        ("b-frames.mkv", 0, 2.5),
        ("b-frames.mkv", 1.7, 3.3),
        ("b-frames.mp4", 2.0, 5.0),
        ("b-frames.mov", 1.4, 1.5),
        ("b-frames.ts", 2.2, 4.2),
        ("fragmented.mp4", 1.4, 4.4),
        ("late-sound.mkv", 0.1, 3.1),
        ("vfr.mp4", 0.8, 3.7),
        ("vp9.webm", 1.2, 4.1),
    ],
)
def test_only_the_kept_part_is_copied(
    name: str, start_s: float, end_s: float, tmp_path: Path
) -> None:
    source = run_ffmpeg(tmp_path / name, *MADE[name])
    result = tmp_path / "result.mp4"
    assert repack(source, result, start_s=start_s, end_s=end_s)["failure"] == ""
    frames = frames_of(source)
    copied = frames_of(result)
    sounds = sounds_of(source)
    [copied_sound] = sounds_of(result)
    zero = min(track[0][0] for track in [frames, *sounds])
    zero = max(zero, Fraction(0)) if name.endswith(("mkv", "webm")) else zero
    times = [at - zero for at, _ in frames]
    first = max(at for at in times if at <= start_s + STEP)
    end = max(at for at in times if at <= end_s + STEP)
    kept = [
        (at - first, picture)
        for (_, picture), at in zip(frames, times, strict=True)
        if first <= at < end
    ]
    assert _in_microseconds(_shown(copied, end - first), Fraction(0)) == _in_microseconds(
        kept, Fraction(0)
    )
    # The list ends each track, whose last packets may reach over its end.
    assert edit_durations(result) == {round((end - first) * MOVIE_TIMESCALE)}
    for at, packet in copied_sound:
        # Packets may have the same bytes as others.
        assert any(
            other == packet and abs(other_at - zero - first - at) <= STEP
            for other_at, other in sounds[0]
        )


def _shown(frames: list[tuple[Fraction, str]], length: Fraction) -> list[tuple[Fraction, str]]:
    return [(at, picture) for at, picture in frames if -MICROSECOND < at < length - MICROSECOND]


def edit_durations(path: Path) -> set[int]:
    """Return the durations in the edit lists of a file whose lists have one edit each."""
    return {int.from_bytes(match, "big") for match in EDIT.findall(path.read_bytes())}


@pytest.mark.parametrize(
    ("name", "failure"),
    [("notes.webm", "unreadable"), ("odd.mkv", "unsupported_codec")],
)
def test_what_can_not_be_repacked_is_told(name: str, failure: str, tmp_path: Path) -> None:
    run_ffmpeg(tmp_path / "odd.mkv", *PICTURE, "-c:v", "mpeg4", "-t", "1")
    (tmp_path / "notes.webm").write_text("These are only notes.")
    assert repack(tmp_path / name, tmp_path / "result.mp4")["failure"] == failure


def test_chapters_languages_and_names_are_kept(tmp_path: Path) -> None:
    chapters = tmp_path / "chapters.txt"
    marks = [("Intro", 0, 2000), ("The harbour", 2000, 5000)]
    chapters.write_text(
        ";FFMETADATA1\n"
        + "".join(
            f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={start}\nEND={end}\ntitle={title}\n"
            for title, start, end in marks
        )
    )
    source = run_ffmpeg(
        tmp_path / "film.mkv",
        *(*PICTURE, *SOUND, "-i", str(chapters), "-map_metadata", "2", *X264, "-c:a", "aac"),
        *("-metadata:s:a:0", "language=deu", "-metadata:s:a:0", "title=Director"),
    )
    whole = tmp_path / "whole.mp4"
    part = tmp_path / "part.mp4"
    repack(source, whole)
    repack(source, part, start_s=3, end_s=4)
    with av.open(str(whole)) as container:
        assert [
            (float(chapter["start"] * chapter["time_base"]), chapter["metadata"]["title"])
            for chapter in container.chapters()
        ] == [(0, "Intro"), (2, "The harbour")]
        sound = container.streams.audio[0]
        assert sound.language == "deu"
        assert "Director" in sound.metadata.values()
    with av.open(str(part)) as container:
        assert [chapter["metadata"]["title"] for chapter in container.chapters()] == ["The harbour"]


def test_bytes_are_the_same_at_each_repetition(tmp_path: Path) -> None:
    source = run_ffmpeg(tmp_path / "film.mkv", *MADE["b-frames.mkv"])
    results = [tmp_path / "first.mp4", tmp_path / "second.mp4"]
    # Each run of Node takes a second at least, which the film's times would show.
    for result in results:
        repack(source, result)
    assert results[0].read_bytes() == results[1].read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_frames_of_the_corpus_are_kept(name: str, tmp_path: Path) -> None:
    if not (CORPUS / name).exists():
        pytest.skip("PORTAL_CORPUS names no corpus with this file")
    copy = ("-map", "0:v", "-map", "0:a?", "-c", "copy")
    sources = [
        run_ffmpeg(tmp_path / f"source.{extension}", "-i", str(CORPUS / name), *copy)
        for extension in FILES[name]
    ]
    results = [source.with_name(f"{source.name}.mp4") for source in sources]
    for source, result in zip(sources, results, strict=True):
        assert repack(source, result)["failure"] == ""
        check_same(source, result)


NUMBERED = ("-g", "50", "-keyint_min", "50", "-sc_threshold", "0", "-bf", "3", "-c:a", "aac")
CLOSED_GROUPS = ("-x264-params", "b-adapt=0:b-pyramid=normal")
OPEN_GROUPS = ("-x264-params", "b-adapt=0:b-pyramid=normal:open-gop=1")
KINDS = {
    "closed groups": CLOSED_GROUPS,
    "open groups": OPEN_GROUPS,
    "uneven rate": (*CLOSED_GROUPS, *("-vf", "select='mod(n+1,3)'", "-fps_mode", "vfr")),
    "late sound": CLOSED_GROUPS,
}
# Beginnings and ends at key frames, just before them, where open groups have frames that are
# decoded later, and among B-frames.
KEPT = [(50, 100), (49, 101), (47, 98), (52, 103), (0, 149), (2, 200)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_begins_and_ends_at_the_chosen_frames(kind: str, tmp_path: Path) -> None:
    film = make_numbered(tmp_path / "film.mp4", *NUMBERED, *KINDS[kind], seconds=8, size="320x180")
    if kind == "late sound":
        inputs = ("-i", str(film), "-itsoffset", "0.5", "-i", str(film))
        maps = ("-map", "0:v", "-map", "1:a", "-c", "copy")
        film = run_ffmpeg(tmp_path / "late.mp4", *inputs, *maps)
    numbers = [number for _, number in numbers_of(film)]
    own_sound = {packet: at for at, packet in sounds_of(film)[0]}
    results = {span: tmp_path / f"{span[0]} to {span[1]}.mp4" for span in KEPT}
    works = [
        json.dumps([str(film), str(result), {"start_s": first / FPS, "end_s": end / FPS}])
        for (first, end), result in results.items()
    ]
    install_tools()
    run_node(str(SCRIPT), *works)
    for (first, end), result in results.items():
        # A time between two frames is that of the frame before.
        begin = max(number for number in numbers if number <= first)
        until = max(number for number in [*numbers, 200] if number <= end)
        length = Fraction(until - begin, FPS)
        visible = [(at, number) for at, number in numbers_of(result) if -STEP < at < length - STEP]
        assert [number for _, number in visible] == [
            number for number in numbers if begin <= number < until
        ]
        for at, number in visible:
            assert abs(at - Fraction(number - begin, FPS)) <= STEP
        for at, packet in sounds_of(result)[0]:
            assert abs(at + Fraction(begin, FPS) - own_sound[packet]) <= STEP


def numbers_of(path: Path) -> list[tuple[Fraction, int]]:
    """Return the time of each frame of a film by `make_numbered`, and the number that it shows."""
    with av.open(str(path), options=OPEN_EDITS) as container:
        return [
            (Fraction(frame.pts) * frame.time_base, number_in(frame.to_ndarray(format="gray")))
            for frame in container.decode(video=0)
        ]
