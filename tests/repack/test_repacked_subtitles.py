"""Text subtitles of a Matroska file come along, as a track of timed text."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from published import FolderSink, make_pass
from running_portal import run_ffmpeg
from test_repack import PICTURE, SOUND, X264, repack

LINES = """1
00:00:00,500 --> 00:00:01,500
<i>Ahoy</i>, harbour

2
00:00:01,250 --> 00:00:02,000
{\\an8}Zoë & "you"
on two lines

3
00:00:03,000 --> 00:00:04,500
The end {sic}
"""
Shown = tuple[float, float, str]
# Texts that are shown together are one cue.
SHOWN: list[Shown] = [
    (0.5, 1.25, "Ahoy, harbour"),
    (1.25, 1.5, 'Ahoy, harbour\nZoë & "you"\non two lines'),
    (1.5, 2, 'Zoë & "you"\non two lines'),
]


async def subtitles_of(path: Path, folder: Path) -> dict[str, list[Shown]]:
    """Return the cues that a worker reads of each track, by its language."""
    result = await make_pass(path, sink=FolderSink(folder), work_dir=folder / "work")
    languages = {rung.name: rung.language or "" for rung in result.plan.subtitles}
    return {
        languages[name]: [(cue.start_s, cue.end_s, cue.plain_text) for cue in cues]
        for name, cues in result.output.captions.items()
    }


def subtitled(path: Path, *codecs: str) -> Path:
    """Make a film with a track of subtitles in each codec, in German and French."""
    lines = path.with_suffix(".srt")
    lines.write_text(LINES)
    languages = ("-metadata:s:s:0", "language=deu", "-metadata:s:s:1", "language=fra")
    maps: Sequence[str] = ("-map", "0", "-map", "1", *["-map", "2"] * len(codecs))
    named = [part for place, codec in enumerate(codecs) for part in (f"-c:s:{place}", codec)]
    media = (
        ("-c:v", "libvpx", "-c:a", "libopus") if path.suffix == ".webm" else (*X264, "-c:a", "aac")
    )
    return run_ffmpeg(
        path,
        *PICTURE,
        *SOUND,
        "-i",
        str(lines),
        *maps,
        *media,
        *named,
        *languages[: 2 * len(codecs)],
    )


@pytest.mark.parametrize("codecs", [("srt", "ass"), ("webvtt",)], ids="-".join)
async def test_texts_come_along_in_their_languages(codecs: tuple[str, ...], tmp_path: Path) -> None:
    source = subtitled(tmp_path / "film.mkv", *codecs)
    assert repack(source, tmp_path / "film.mp4")["failure"] == ""
    subtitles = await subtitles_of(tmp_path / "film.mp4", tmp_path)
    ends = [(3, 4.5, "The end {sic}" if codec != "ass" else "The end") for codec in codecs]
    assert list(subtitles.values()) == [[*SHOWN, end] for end in ends]
    assert list(subtitles) == ["de", "fr"][: len(codecs)]


async def test_subtitles_of_webm_come_along(tmp_path: Path) -> None:
    source = subtitled(tmp_path / "film.webm", "webvtt")
    repack(source, tmp_path / "film.mp4")
    [cues] = (await subtitles_of(tmp_path / "film.mp4", tmp_path)).values()
    assert cues == [*SHOWN, (3, 4.5, "The end {sic}")]


async def test_a_part_of_a_film_has_the_subtitles_of_its_time(tmp_path: Path) -> None:
    source = subtitled(tmp_path / "film.mkv", "srt")
    repack(source, tmp_path / "film.mp4", start_s=1.4, end_s=3.2)
    [cues] = (await subtitles_of(tmp_path / "film.mp4", tmp_path)).values()
    first_s = 1.4014  # The frame that is shown at 1.4 s began before.
    assert cues == [
        (0, pytest.approx(1.5 - first_s, abs=0.04), 'Ahoy, harbour\nZoë & "you"\non two lines'),
        (
            pytest.approx(1.5 - first_s, abs=0.04),
            pytest.approx(2 - first_s, abs=0.04),
            'Zoë & "you"\non two lines',
        ),
        (
            pytest.approx(3 - first_s, abs=0.04),
            pytest.approx(3.2 - first_s, abs=0.04),
            "The end {sic}",
        ),
    ]
