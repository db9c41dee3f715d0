"""Repack a media file of any container to MP4 or QuickTime, without loss, before it is sent.

Begin with `repacked`. Pictures and sound are copied, and subtitles of text converted. Sound alone
becomes a film with a still picture: the file's cover, or its title. Codecs that neither container
carries, or the portal doesn't decode, are refused. The bytes are the same at each repetition.
"""

import asyncio
import math
import shutil
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any

from portal.client.calls import PortalFailure
from portal.concurrency import task_group
from portal.processes import child
from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.command import general_options
from portal.transcoding.errors import TranscodeFailed
from portal.transcoding.probing.probe import DECODERS

# Extensions by the format that ffmpeg writes, the preferred one first.
_FORMATS = {"mp4": ".mp4", "mov": ".mov"}
_CHILD = ("-I", "-B", "-m", "portal.client.contents")
# FFmpeg's demuxers of files that hold media themselves. Playlists would name other files, which
# would then be published.
DEMUXERS = (
    "aac,ac3,aiff,amr,asf,au,avi,caf,dts,dv,eac3,f4v,flac,flv,gxf,h264,hevc,ivf,matroska,mov,mp3"
    ",mpeg,mpegts,mpegvideo,mxf,nut,obu,ogg,rm,tta,vc1,voc,w64,wav,webm,wtv,wv"
)
_READING = {"protocol_whitelist": "file,pipe", "format_whitelist": DEMUXERS}
_MEMORY_BYTES = 4 * 1024**3
_MAX_ANSWER_BYTES = 1024**2
_EXAMINE_S = 60.0
# Time limit of a run. A slow disk copies this many bytes in a second.
_LEAST_RUN_S = 900
_SLOWEST_BYTES_PER_S = 2_000_000
# The index of an MP4 file is small, and so is a still picture.
_GROWTH = 1.1
_SPARE_BYTES = 64 * 1024**2
_SAME_EACH_TIME = ("-fflags", "+bitexact", "-flags", "+bitexact")
# A frame a second, with a key frame in each of the portal's segments.
_STILL_FRAMES = ("-g", "4", "-bf", "0", "-pix_fmt", "yuv420p", "-threads", "1")
_X264 = ("-c:v", "libx264", "-preset", "veryfast", "-tune", "stillimage", "-crf", "18")
# A cover is shown whole, with even sides of at most 1280 pixels. Its only frame is repeated.
_FITTED = (
    "scale=1280:1280:force_original_aspect_ratio=decrease:force_divisible_by=2,setsar=1"
    ",loop=loop=-1:size=1,setpts=N/TB,fps=1"
)
_TITLE_FILE = "title.txt"
_BACKGROUND = "color=c=0x20264a:s=1280x720:r=1"
_TITLE_LINE_CHARS = 28
_MAX_TITLE_LINES = 5
# The font is the machine's own.
_TITLE = (
    f"drawtext=textfile={_TITLE_FILE}:expansion=none:fontcolor=white:fontsize=64:line_spacing=16"
    ":text_align=center:x=(w-text_w)/2:y=(h-text_h)/2"
)

_DISK_FULL = "No space left on device"

# Callback for progress, with the seconds of the film that are repacked so far, and its length.
OnRepacked = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Sendable:
    """File that a portal accepts, and a sentence about how it was made; empty for the original."""

    file: Path
    note: str = ""


@dataclass(frozen=True, slots=True)
class Contents:
    """Container, title and tracks of a media file; `tracks` as `portal.client.contents`."""

    container: str
    title: str
    duration_s: float
    tracks: Sequence[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the tracks of a kind, without the cover."""
        return [track for track in self.tracks if track["kind"] == kind and not track["is_cover"]]


@asynccontextmanager
async def repacked(file: Path, *, on_repacked: OnRepacked) -> AsyncIterator[Sendable]:
    """Copy a file's tracks into a temporary MP4 or QuickTime file, removed when the context ends.

    Its name is that of the file, with another extension. Raises `PortalFailure` if the file can't
    be read or repacked, or the disk is full.
    """
    contents = await examine(file)
    with _temporary_folder(file) as folder:
        yield await _repack(file, contents, Path(folder), on_repacked)


async def examine(file: Path) -> Contents:
    """Return the contents of a media file. Raises `PortalFailure` if it can't be read."""
    limits = child.Limits(
        nice=0, memory_bytes=_MEMORY_BYTES, cpu_s=math.ceil(_EXAMINE_S), file_bytes=1
    )
    request = {
        "address": _address(file),
        "options": _READING,
        "formats": list(_FORMATS),
        "decoders": DECODERS,
    }
    process = await child.spawn((sys.executable, *_CHILD), limits=limits, stdin=True)
    try:
        async with asyncio.timeout(_EXAMINE_S), task_group() as tasks:
            tasks.create_task(child.read_tail(process.stderr, _MAX_ANSWER_BYTES))
            reading = tasks.create_task(child.read_tail(process.stdout, _MAX_ANSWER_BYTES))
            await child.ask(process, request)
        answer = loads(reading.result())
    except (TimeoutError, JSONDecodeError):
        answer = {"error": "it is damaged"}
    finally:
        await child.stop(process)
    if error := answer.get("error"):
        raise PortalFailure(f"{file.name} can't be read as a video or sound file: {error}.")
    return Contents(**answer)


def _address(file: Path) -> str:
    """Return the address of a file in FFmpeg's notation, which may contain any character."""
    return f"file:{file.absolute()}"


def _temporary_folder(file: Path) -> tempfile.TemporaryDirectory[str]:
    """Make a temporary folder with space for the result: the system's, or else beside the file."""
    needed_bytes = file.stat().st_size * _GROWTH + _SPARE_BYTES
    places = (Path(tempfile.gettempdir()), file.absolute().parent)
    for place in places:
        if shutil.disk_usage(place).free >= needed_bytes:
            try:
                return tempfile.TemporaryDirectory(prefix="portal-", dir=place)
            except OSError:
                continue  # the folder of the file may be read-only
    raise PortalFailure(
        f"Repacking {file.name} needs {needed_bytes / 1e9:.1f} GB of free space in "
        f"{places[0]} or {places[1]}. Set TMPDIR to a folder that has more."
    )


async def _repack(
    file: Path,
    contents: Contents,
    folder: Path,
    on_repacked: OnRepacked,
) -> Sendable:
    async def report(done_s: float) -> None:
        on_repacked(min(round(done_s), length_s), length_s)

    length_s = round(contents.duration_s)
    pictures = contents.of("video")
    sounds = contents.of("audio")
    if not (pictures or sounds):
        raise PortalFailure(f"{file.name} has neither a picture nor sound.")
    name = _target_format(file, [*pictures, *sounds])
    target = folder / f"{file.stem}{_FORMATS[name]}"
    if pictures:
        texts = [track for track in contents.of("subtitle") if track["is_text"]]
        choices = [_copies([*pictures, *sounds, *texts])]
        note = _note(file, contents, dropped_count=len(contents.of("subtitle")) - len(texts))
    else:
        lines = textwrap.wrap(contents.title.strip() or file.stem, _TITLE_LINE_CHARS)
        (folder / _TITLE_FILE).write_text("\n".join(lines[:_MAX_TITLE_LINES]), encoding="utf-8")
        choices = [
            (*_still(picture), *_copies(sounds), *_X264, *_STILL_FRAMES)
            for picture in _pictures(contents)
        ]
        note = "Made a film of the sound, with a still picture; the sound is unchanged."
    for arguments in choices:
        try:
            await _run(file, target, (*arguments, "-f", name), report)
        except TranscodeFailed as exc:
            failure = exc
        else:
            return Sendable(target, note)
    reason = "the disk is full" if _DISK_FULL in failure.detail else failure.detail
    raise PortalFailure(f"{file.name} can't be repacked: {reason}.") from failure


def _target_format(file: Path, tracks: Sequence[dict[str, Any]]) -> str:
    """Return the first format that carries all tracks. Raises `PortalFailure` if there is none."""
    for name in _FORMATS:
        if all(name in track["fits"] for track in tracks):
            return name
    codecs = {track["codec"] for track in tracks if list(_FORMATS)[-1] not in track["fits"]}
    raise PortalFailure(
        f"{file.name} contains {' and '.join(sorted(codecs))}, which the portal doesn't take. "
        "Convert it to H.264 and AAC, for example with HandBrake (https://handbrake.fr)."
    )


def _note(file: Path, contents: Contents, *, dropped_count: int) -> str:
    container = "WebM" if file.suffix.lower() == ".webm" else contents.container
    name = container.partition(" (")[0].partition(" / ")[0]
    if not dropped_count:
        return f"Repacked from {name}; nothing is lost."
    return f"Repacked from {name}, without {dropped_count} subtitle track(s) that are no text."


def _copies(tracks: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the arguments that copy tracks, and convert subtitles."""
    maps = [word for track in tracks for word in ("-map", f"0:{track['index']}")]
    return (*maps, "-c", "copy", "-c:s", "mov_text")


def _pictures(contents: Contents) -> list[str]:
    """Return filters that make a picture for sound, in the order in which they are tried.

    A cover may be damaged, and the machine may have no font for the title.
    """
    covers = [f"[0:{track['index']}]{_FITTED}" for track in contents.tracks if track["is_cover"]]
    return [*covers[:1], f"{_BACKGROUND},{_TITLE}", _BACKGROUND]


def _still(picture: str) -> tuple[str, ...]:
    """Return the arguments that show a picture as long as the shortest other track."""
    return ("-filter_complex", f"{picture}[still]", "-map", "[still]", "-shortest")


async def _run(
    file: Path,
    target: Path,
    arguments: Sequence[str],
    on_progress: ffmpeg.OnFfmpegProgress,
) -> None:
    """Run ffmpeg with these arguments of its output. Raises TranscodeFailed."""
    size_bytes = (await asyncio.to_thread(file.stat)).st_size
    timeout_s = _LEAST_RUN_S + size_bytes / _SLOWEST_BYTES_PER_S
    limits = child.Limits(
        nice=0,
        memory_bytes=_MEMORY_BYTES,
        cpu_s=math.ceil(timeout_s),
        file_bytes=round(size_bytes * _GROWTH) + _SPARE_BYTES,
    )
    # Files such as AVI have decode times only.
    reading = [word for name, value in _READING.items() for word in (f"-{name}", value)]
    source = (*general_options(), "-fflags", "+genpts", *reading, "-i", _address(file))
    await ffmpeg.run(
        (*source, *arguments, *_SAME_EACH_TIME, _address(target)),
        timeout_s=timeout_s,
        on_progress=on_progress,
        cwd=target.parent,
        limits=limits,
    )
