"""Films with a distinct word in each of their tracks, tags and boxes, and a red part to remove."""

import io
import struct
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import av
import numpy as np
from running_portal import run_ffmpeg

FILM_S = 12
# The part to remove is red. The parts before and after it are green and blue.
KEPT = ((0.0, 4.0), (8.0, 12.0))
COLOURS = ("green", "red", "blue")
TAGS = ("title", "artist", "comment", "copyright", "location", "com.maker.model")
BOXES = ("free", "skip", "uuid", "meta", "XMP_")
USER_DATA = "086f3693-b7b3-4f2c-9653-21492feee5b8"
# Line that a device writes for each second, in its own subtitles.
TELEMETRY = "[iso: 100] [shutter: 1/500.0] [fnum: 2.8] [latitude: 53.12] [longitude: 15.01] [{}: 7]"
NEVER: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Words:
    """Words by their places in a film, each with the stages in which viewers may read it.

    They are so different that a search for one doesn't guess another.
    """

    film: str
    stages: dict[str, frozenset[str]] = field(default_factory=dict)

    def new(self, place: str, stages: frozenset[str] = NEVER) -> str:
        """Return the word of a place, which viewers may read in these stages."""
        self.stages[place] = stages
        return self.at(place)

    def at(self, place: str) -> str:
        """Return the word of a place."""
        return f"w{blake2b(f'{self.film} {place}'.encode(), digest_size=8).hexdigest()}"


def make_secret_film(
    folder: Path, words: Words, *, of_kept: frozenset[str], whole: frozenset[str]
) -> Path:
    """Make a film of three parts with these words.

    Viewers may read those of kept parts in the stages `of_kept`, others in the stages `whole`.
    """
    sources = [
        _plain_film(folder, words),
        _subtitles(folder, words, of_kept, whole),
        _telemetry(folder, words),
        _chapters(folder, words, of_kept, whole),
    ]
    tags = [f"{name}={words.new('tag' + name.rpartition('.')[2])}" for name in TAGS]
    of_tracks = {
        "v:0": [
            f"handler_name={words.new('picturehandler')}",
            f"title={words.new('picturetitle')}",
        ],
        "a:0": [f"handler_name={words.new('soundtitle', of_kept)}"],
        "s:0": [f"handler_name={words.new('subtitletitle', of_kept)}", "language=eng"],
        "s:1": [f"handler_name=DJI.Subtitle {words.new('telemetryhandler')}"],
    }
    path = folder / f"{words.new('filename', of_kept)}.mp4"
    run_ffmpeg(
        path,
        *(word for source in sources for word in ("-i", str(source))),
        *("-map", "0", "-map", "1", "-map", "2", "-map_chapters", "3"),
        *("-c", "copy", "-c:s", "mov_text", "-movflags", "use_metadata_tags"),
        *(word for tag in tags for word in ("-metadata", tag)),
        *(
            word
            for track, names in of_tracks.items()
            for name in names
            for word in (f"-metadata:s:{track}", name)
        ),
    )
    with path.open("ab") as file:
        for kind in BOXES:
            body = bytes(16) + words.new(f"box{kind.lower().strip('_')}").encode()
            file.write(struct.pack(">I4s", 8 + len(body), kind.encode()) + body)
    return path


def is_red(content: bytes) -> bool:
    """Return whether a picture, or a frame of a segment, has an area in the removed colour."""
    with av.open(io.BytesIO(content)) as container:
        for frame in container.decode(video=0):
            red, green, blue = np.moveaxis(frame.to_ndarray(format="rgb24"), -1, 0)
            is_pixel_red = (red > 150) & (green < 90) & (blue < 90)
            if is_pixel_red.mean() > 0.001:
                return True
    return False


def _plain_film(folder: Path, words: Words) -> Path:
    """Make the picture, with a word in its stream, and the sound."""
    part_s = FILM_S / len(COLOURS)
    pictures = [f"color={colour}:size=320x180:rate=25:duration={part_s}" for colour in COLOURS]
    inputs = [*pictures, f"sine=duration={FILM_S}"]
    message = f"h264_metadata=sei_user_data={USER_DATA}+{words.new('sei')}"
    return run_ffmpeg(
        folder / f"{words.film}-plain.mp4",
        *(word for each in inputs for word in ("-f", "lavfi", "-i", each)),
        *("-filter_complex", "[0][1][2]concat=n=3[v]", "-map", "[v]", "-map", "3"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "25"),
        *("-bsf:v", message),
    )


def _subtitles(folder: Path, words: Words, of_kept: frozenset[str], whole: frozenset[str]) -> Path:
    cues = {
        "00:00:01,000 --> 00:00:02,000": words.new("subtitlekept", of_kept),
        "00:00:05,000 --> 00:00:07,000": words.new("subtitleremoved", whole),
        # A small part of it is kept.
        "00:00:07,200 --> 00:00:08,050": words.new("edgeremoved", whole),
    }
    return _subrip(folder / f"{words.film}-subtitles.srt", cues)


def _telemetry(folder: Path, words: Words) -> Path:
    line = TELEMETRY.format(words.new("telemetry"))
    cues = {f"00:00:{s:02},000 --> 00:00:{s + 1:02},000": line for s in range(FILM_S)}
    return _subrip(folder / f"{words.film}-telemetry.srt", cues)


def _subrip(path: Path, cues: dict[str, str]) -> Path:
    numbered = enumerate(cues.items(), 1)
    path.write_text("\n".join(f"{number}\n{times}\n{text}\n" for number, (times, text) in numbered))
    return path


def _chapters(folder: Path, words: Words, of_kept: frozenset[str], whole: frozenset[str]) -> Path:
    path = folder / f"{words.film}.ffmetadata"
    titles = {
        0: words.new("chapterkept", of_kept),
        4: words.new("chapterremoved", whole),
        8: words.new("chapterlast", of_kept),
    }
    parts = [
        f"[CHAPTER]\nTIMEBASE=1/1\nSTART={start}\nEND={start + 4}\ntitle={title}\n"
        for start, title in titles.items()
    ]
    path.write_text(";FFMETADATA1\n" + "".join(parts))
    return path
