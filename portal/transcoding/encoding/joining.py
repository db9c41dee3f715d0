"""Join stored renditions into one file, without encoding: MP4 with the picture, or M4A.

The file has the frames and the times of the segments; those of a cut film follow each other without
gaps. Its index is at the beginning, so that it plays while it is loaded. Limits: renditions as this
package writes or copies them. The working folder has room for the segments and the file, which is
twice the size of the file.
"""

import asyncio
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from langcodes import Language

from portal.processes.child import Limits
from portal.transcoding.encoding import command, ffmpeg
from portal.transcoding.encoding.continuous import copy_continuously
from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.cmaf import SegmentError

# Address space for reading and writing indexes, which take some hundred megabytes for 12 hours.
_MEMORY_BYTES = 4 * 1024**3
# Room for the index of the joined file, in addition to its segments.
_INDEX_BYTES = 256 * 1024**2
_TITLE = "title.txt"
_LABEL = "label-{}.txt"
# Ticks per second of edit lists, which begin the tracks together. The default is too coarse.
_MOVIE_TIMESCALE = 90_000


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTrack:
    """Finished rendition that becomes a track. `language` is a BCP 47 tag."""

    files: RenditionFiles
    language: str | None = None
    label: str | None = None


async def join_tracks(
    video: StoredTrack | None,
    sounds: Sequence[StoredTrack],
    *,
    title: str,
    folder: Path,
    timeout_s: float,
) -> Path:
    """Return an MP4 file in the folder with a picture and its sounds, or an M4A file without one.

    Players use the first sound unless a viewer chooses another one. Raises TranscodeFailed, or
    whatever a rendition's reader raised.
    """
    tracks = [*([video] if video else []), *sounds]
    names = [f"track-{number}.mp4" for number in range(len(tracks))]
    size_bytes = await _copy_tracks(tracks, [folder / name for name in names], video)
    # ffmpeg reads texts from files, because other users of the machine can list its arguments.
    await asyncio.to_thread((folder / _TITLE).write_text, f"title={title}")
    for number, sound in enumerate(sounds):
        text = f"handler_name={sound.label or 'Sound'}"
        await asyncio.to_thread((folder / _LABEL.format(number)).write_text, text)
    joined = "joined.mp4" if video else "joined.m4a"
    arguments = (
        *command.general_options(),
        # The tracks have a common clock, and sound may begin before zero with samples that the
        # decoder discards.
        "-copyts",
        *(argument for name in names for argument in command.own_file(name)),
        *(argument for number in range(len(names)) for argument in ("-map", str(number))),
        *(*command.BARE, "-c", "copy", "-/metadata", _TITLE),
        *_sound_options(sounds),
        *("-movie_timescale", str(_MOVIE_TIMESCALE), "-movflags", "+faststart"),
        *("-f", "mp4" if video else "ipod", joined),
    )
    limits = Limits(memory_bytes=_MEMORY_BYTES, file_bytes=size_bytes + _INDEX_BYTES)
    # While the index is moved to the beginning, ffmpeg reports no progress.
    await ffmpeg.run(arguments, timeout_s=timeout_s, stall_s=timeout_s, cwd=folder, limits=limits)
    path = folder / joined
    if not await asyncio.to_thread(path.exists):
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail="no file was written")
    return path


async def _copy_tracks(
    tracks: Sequence[StoredTrack], paths: Sequence[Path], video: StoredTrack | None
) -> int:
    """Write the segments of each track into a file, and return the size of all in bytes."""
    moves_s: list[Fraction] | None = None
    size_bytes = 0
    try:
        for path, track in zip(paths, tracks, strict=True):
            # The first track is the picture, if there is one, and sound stays in sync with it.
            moves_s = await copy_continuously(
                track.files, path, is_sound=track is not video, moves_s=moves_s
            )
            size_bytes += (await asyncio.to_thread(path.stat)).st_size
    except (SegmentError, struct.error) as exc:
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=str(exc)) from exc
    return size_bytes


def _sound_options(sounds: Sequence[StoredTrack]) -> Iterator[str]:
    for number, sound in enumerate(sounds):
        # MP4 has languages of three letters.
        language = Language.get(sound.language).to_alpha3() if sound.language else "und"
        yield from (f"-metadata:s:a:{number}", f"language={language}")
        yield from (f"-/metadata:s:a:{number}", _LABEL.format(number))
        yield from (f"-disposition:a:{number}", "0" if number else "default")
