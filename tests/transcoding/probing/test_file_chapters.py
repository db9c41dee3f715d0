"""Chapters of a file begin with the film, and each has a title."""

from pathlib import Path

import pytest
from media_recipes import MakeMedia, lavfi
from mp4_writer import replace_box
from published import Studio, probe

from portal.transcoding.packaging.master import Kind

Chapters = list[tuple[float, str]]


def with_chapters(make_media: MakeMedia, folder: Path, chapters: Chapters) -> Path:
    """Make a film of 4 s with these chapters; the last one ends with it."""
    ends_s = [*(start_s for start_s, _ in chapters[1:]), 4.0]
    parts = [
        f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={start_s * 1000:.0f}\nEND={end_s * 1000:.0f}\n"
        + (f"title={title}\n" if title else "")
        for (start_s, title), end_s in zip(chapters, ends_s, strict=True)
    ]
    listing = folder / "chapters.txt"
    listing.write_text(";FFMETADATA1\n" + "".join(parts))
    film = lavfi("testsrc2=s=64x48:r=10:d=4")
    metadata = ("-f", "ffmetadata", "-i", str(listing), "-map_chapters", "1")
    plain = make_media("chapters.mp4", *film, *metadata, "-c:v", "mpeg4")
    # FFmpeg leaves untitled chapters out of the track of text. Without a reference to that track,
    # the list in `chpl` counts.
    source = folder / "chapters.mp4"
    source.write_bytes(replace_box(plain.read_bytes(), b"tref"))
    return source


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([(0.04, "Opening"), (1, "Middle")], [(0, "Opening"), (1, "Middle")]),
        ([(1.5, "Interview"), (2, "End")], [(0, "Interview"), (2, "End")]),
        ([(0, ""), (1, "Talk"), (2, "")], [(0, "Chapter 1"), (1, "Talk"), (2, "Chapter 3")]),
        ([(0, "Whole")], [(0, "Whole")]),
        ([(0, "")], []),
        ([(0, "GPS (48.13, 11.57) H 6.0m"), (1, "GPS (48.14, 11.58) H 7.0m")], []),
    ],
)
async def test_chapters_are_kept_whatever_the_first_is_like(
    written: Chapters, expected: Chapters, make_media: MakeMedia, tmp_path: Path
) -> None:
    source = with_chapters(make_media, tmp_path, written)
    chapters = (await probe(source)).chapters
    assert [(chapter["start_s"], chapter["title"]) for chapter in chapters] == expected


async def test_titles_that_a_file_also_has_as_text_are_no_captions(
    studio: Studio, tmp_path: Path
) -> None:
    source = with_chapters(studio.make, tmp_path, [(0, "One"), (2, "Two")])
    assert (await probe(source)).subtitles
    assert (await studio.publish(source)).result.of(Kind.SUBTITLES) == []
