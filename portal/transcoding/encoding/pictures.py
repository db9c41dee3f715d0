"""Make the pictures of a video: posters and storyboards.

A poster is made from the source, from a frame of a finished rendition, or from an uploaded picture.
The first poster is made from the source's key frames, if it has enough of them: they decode alone,
so few packets are decoded, and the poster need not wait for the renditions. An uploaded picture is
untrusted input: its kind is known from its first bytes, and the confined ffmpeg decodes only that
kind and opens no other file. Metadata is dropped, except for the orientation.

A storyboard is made from a finished rendition: thumbnails for the seek bar, tiled into sprites.
Limits: H.264 as this package writes or copies it. One segment is in memory, and the segments of a
sprite are in the working folder.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import count, pairwise
from pathlib import Path

from portal.processes.child import Limits
from portal.telemetry.tracing import span
from portal.transcoding.encoding import command, ffmpeg
from portal.transcoding.encoding.filters import still_filters, visible_frames
from portal.transcoding.encoding.output_validation import refusing_unreadable
from portal.transcoding.encoding.sink import Sink, pass_folder, put_file
from portal.transcoding.encoding.source_proxy import proxied
from portal.transcoding.errors import FailCode, PictureFault, PictureRejected, TranscodeFailed
from portal.transcoding.packaging.cmaf import shown_frames
from portal.transcoding.packaging.hls import INIT_NAME, MediaPlaylist
from portal.transcoding.planning.storyboard import (
    SPRITE_PATTERN,
    STORYBOARD_NAME,
    TILES,
    TILING,
    Storyboard,
)
from portal.transcoding.probing.facts import Probe

POSTER_NAME = "poster.jpg"
_MAX_SIDE = 1280
_POSTER_QUALITY = 3
# Times of the candidates for a poster, as shares of the video: neither title nor credits.
_CANDIDATES_AT = (0.1, 0.2, 0.3, 0.45, 0.6)
# Longest distance of key frames at which they suffice to choose a poster from.
_MAX_KEY_DISTANCE_S = 20.0
# Length of the beginning from which a poster is chosen otherwise.
_DECODED_S = 10.0
# Names in the working folder.
_SEGMENT = "segment.mp4"
_PICTURE = "picture"
MAX_PICTURE_PIXELS = 50_000_000
# Measured with a PNG of 49 megapixels in 16 bits with transparency: 5 s, 0.45 GB.
_PICTURE_LIMITS = Limits(memory_bytes=2 * 1024**3, cpu_s=60, file_bytes=64 * 1024**2)
# Message of ffmpeg about a picture with too many pixels.
_TOO_MANY_PIXELS = "exceeds specified max pixel count"
_PICTURE_FAULTS = {
    FailCode.FFMPEG_FAILED,
    FailCode.OUT_OF_MEMORY,
    FailCode.TIMED_OUT,
    FailCode.STALLED,
}
_SPRITE_SOURCE = "frames.mp4"
_SPRITE_LIMIT_S = 300.0
_SPRITE_QUALITY = 5


async def put_poster(source_url: str, probe: Probe, *, sink: Sink, work_dir: Path) -> bool:
    """Put the candidate with the largest file, because black and blurred frames make small files.

    Returns False if there is no candidate; the video is then published without a poster.
    """
    candidates = []
    with pass_folder(work_dir) as folder, span("poster"):
        async with proxied(source_url) as source:
            for arguments in _candidate_arguments(source.name, probe):
                with suppress(TranscodeFailed):
                    candidate = await _run_for_poster(
                        arguments, folder, timeout_s=120.0, environ=source.environ
                    )
                    candidates.append(candidate)
    poster = max(candidates, key=len, default=b"")
    if poster:
        await put_file(sink, POSTER_NAME, poster)
    return bool(poster)


async def _run_for_poster(
    arguments: Sequence[str],
    work_dir: Path,
    *,
    timeout_s: float = 30.0,
    limits: Limits | None = None,
    environ: Mapping[str, str] | None = None,
) -> bytes:
    """Run ffmpeg and return the poster, empty if none was written. Raises as `ffmpeg.run` does."""
    path = work_dir / POSTER_NAME
    await asyncio.to_thread(path.unlink, missing_ok=True)
    await ffmpeg.run(arguments, timeout_s=timeout_s, cwd=work_dir, limits=limits, environ=environ)
    try:
        return await asyncio.to_thread(path.read_bytes)
    except FileNotFoundError:
        return b""


def _candidate_arguments(source_name: str, probe: Probe) -> Iterator[tuple[str, ...]]:
    """Yield ffmpeg's arguments for each candidate for a poster.

    One run for all candidates would take several times the memory.
    """
    video = probe.video
    distance_s = video.max_key_distance_s
    has_keys = distance_s is not None and distance_s <= _MAX_KEY_DISTANCE_S
    options = (*command.KEY_FRAMES_ONLY, "-noaccurate_seek") if has_keys else ()
    size = _poster_size(video.width, video.height)
    filters = ",".join((*visible_frames(video), "select='eq(n,0)'", *still_filters(video, size)))
    # No frame is found after the last one, however long that is shown.
    last_s = video.duration_s if video.last_frame_s is None else video.last_frame_s
    duration_s = probe.duration_s if last_s is None else last_s
    reachable_s = duration_s if has_keys else min(duration_s, _DECODED_S)
    for share in _CANDIDATES_AT:
        at_s = reachable_s * share
        yield (
            *command.general_options(),
            *command.source_input(source_name, probe, "-threads", "1", *options, from_s=at_s),
            *("-map", f"0:{video.index}", *command.BARE, "-vf", filters),
            *command.jpeg_output(POSTER_NAME, _POSTER_QUALITY),
        )


async def extract_frame(init: bytes, segment: bytes, *, at_s: float, work_dir: Path) -> bytes:
    """Return the frame shown `at_s` after a segment's first frame, as an upright JPEG in BT.709.

    Later times give the last frame. Limits: H.264 as this package writes it; the segment is in
    memory and, while ffmpeg runs, in the working folder. Raises TranscodeFailed.
    """
    with refusing_unreadable():
        number = sum(shown_s <= at_s for shown_s, _ in shown_frames(init, segment)[1:])
    await asyncio.to_thread((work_dir / _SEGMENT).write_bytes, init + segment)
    fit = (
        f"scale=w='min(iw,{_MAX_SIDE})':h='min(ih,{_MAX_SIDE})'"
        ":force_original_aspect_ratio=decrease:force_divisible_by=2:out_range=pc"
    )
    arguments = (
        *(*command.general_options(), *command.own_file(_SEGMENT)),
        *("-map", "0:v:0", *command.BARE, "-vf", f"select='eq(n,{number})',{fit}"),
        *command.jpeg_output(POSTER_NAME, _POSTER_QUALITY),
    )
    if frame := await _run_for_poster(arguments, work_dir):
        return frame
    raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail="no frame was written")


class PictureKind(Enum):
    """Accepted kind of picture: its demuxer, its decoder, and its first bytes by their offsets."""

    JPEG = ("jpeg_pipe", "mjpeg", {0: b"\xff\xd8\xff"})
    PNG = ("png_pipe", "png", {0: b"\x89PNG\r\n\x1a\n"})
    WEBP = ("webp_pipe", "webp", {0: b"RIFF", 8: b"WEBP"})


def picture_kind(content: bytes) -> PictureKind | None:
    """Return the kind of a picture by its first bytes; None if it is no JPEG, PNG or WebP."""
    for kind in PictureKind:
        if all(content.startswith(part, place) for place, part in kind.value[2].items()):
            return kind
    return None


async def fit_picture(content: bytes, *, shape: tuple[int, int], work_dir: Path) -> bytes:
    """Return the middle of a picture, cut to a shape (width, height in pixels), as JPEG.

    Transparent parts become black. Raises PictureRejected, or TranscodeFailed if the picture is not
    the cause.
    """
    kind = picture_kind(content)
    if kind is None:
        raise PictureRejected(PictureFault.UNREADABLE)
    demuxer, decoder, _ = kind.value
    width, height = _poster_size(*shape)
    filters = (
        # The picture is cut before it is scaled, because one of a pixel's width would become huge.
        f"crop=w='min(iw,ih*{width}/{height})':h='min(ih,iw*{height}/{width})'",
        f"scale={width}:{height}:out_range=pc",
        "format=gbrap,premultiply=inplace=1",
    )
    arguments = (
        *command.general_options(),
        *("-threads", "1", "-filter_threads", "1", "-max_pixels", str(MAX_PICTURE_PIXELS)),
        *("-c:v", decoder, *command.own_file(_PICTURE, demuxer=demuxer)),
        *("-map", "0:v:0", *command.BARE, "-vf", ",".join(filters)),
        *command.jpeg_output(POSTER_NAME, _POSTER_QUALITY),
    )
    await asyncio.to_thread((work_dir / _PICTURE).write_bytes, content)
    try:
        picture = await _run_for_poster(arguments, work_dir, limits=_PICTURE_LIMITS)
    except TranscodeFailed as exc:
        if exc.code not in _PICTURE_FAULTS:
            raise
        is_large = _TOO_MANY_PIXELS in exc.detail
        fault = PictureFault.TOO_LARGE if is_large else PictureFault.UNREADABLE
        raise PictureRejected(fault, detail=exc.detail) from exc
    if not picture:
        raise PictureRejected(PictureFault.UNREADABLE)
    return picture


def _poster_size(width: int, height: int) -> tuple[int, int]:
    """Return the size of the poster of a video of this size, in even numbers for 4:2:0."""
    shrink = min(1.0, _MAX_SIDE / max(width, height))
    return max(2, int(width * shrink / 2) * 2), max(2, int(height * shrink / 2) * 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class RenditionFiles:
    """Finished rendition: its playlist, and a function that reads the files named in it."""

    playlist: MediaPlaylist
    read: Callable[[str], Awaitable[bytes]]

    async def read_init(self) -> bytes:
        """Return the init segment. Raises whatever the reader raised."""
        return await self.read(self.playlist.map_uri or INIT_NAME)


class _Sprite:
    """Frames of one sprite, and a file (`source`) with the segments that contain them.

    `are_idr` says of each frame, in the order shown, whether it is an IDR picture. `chosen` has the
    numbers of the sprite's frames.
    """

    def __init__(self, source: Path, init: bytes) -> None:
        self.source = source
        self.are_idr: list[bool] = []
        self.chosen: list[int] = []
        source.write_bytes(init)

    def add(self, segment: bytes, are_idr: Sequence[bool], chosen: Sequence[int]) -> None:
        self.chosen += [len(self.are_idr) + number for number in chosen]
        self.are_idr += are_idr
        with self.source.open("ab") as file:
            file.write(segment)

    async def put(self, name: str, storyboard: Storyboard, sink: Sink) -> None:
        """Make and put the sprite. If all its frames are IDR pictures, only those are decoded."""
        from_keys = all(self.are_idr[number] for number in self.chosen)
        numbers = self.chosen
        if from_keys:
            numbers = [sum(self.are_idr[:number]) for number in self.chosen]
        chosen = "+".join(f"eq(n,{number})" for number in numbers)
        scale = f"scale={storyboard.width}:{storyboard.height}:out_range=pc"
        filters = f"select='{chosen}',{scale},setsar=1,{TILING}"
        # More threads take three times as long for a few key frames.
        decoding = ("-threads", "1", *command.KEY_FRAMES_ONLY) if from_keys else ()
        arguments = (
            *(*command.general_options(), *decoding, *command.own_file(self.source.name)),
            *("-map", "0:v:0", *command.BARE, "-vf", filters),
            *command.jpeg_output(name, _SPRITE_QUALITY),
        )
        folder = self.source.parent
        await ffmpeg.run(arguments, timeout_s=_SPRITE_LIMIT_S, cwd=folder)
        path = folder / name
        if not await asyncio.to_thread(path.exists):
            raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail="no sprite was written")
        await put_file(sink, name, path)


async def make_storyboard(
    rendition: RenditionFiles,
    storyboard: Storyboard,
    *,
    sink: Sink,
    work_dir: Path,
) -> None:
    """Put the sprites of a rendition's thumbnails, and then the WebVTT that refers to them.

    Raises TranscodeFailed, DiskFull, or whatever the rendition's reader or the sink raised.
    """
    duration_s = rendition.playlist.duration_s
    times_s: list[float] = []
    with pass_folder(work_dir) as folder, span("thumbnails"):
        source = folder / _SPRITE_SOURCE
        init = await rendition.read_init()
        sprite = _Sprite(source, init)
        names = (SPRITE_PATTERN % number for number in count())
        thumbnails = _thumbnails(rendition, init, storyboard)
        async for segment, are_idr, chosen, chosen_s in thumbnails:
            times_s += chosen_s
            while chosen:
                room = TILES - len(sprite.chosen)
                await asyncio.to_thread(sprite.add, segment, are_idr, chosen[:room])
                chosen = chosen[room:]
                if len(sprite.chosen) == TILES:
                    await sprite.put(next(names), storyboard, sink)
                    sprite = _Sprite(source, init)
        if sprite.chosen:
            await sprite.put(next(names), storyboard, sink)
        text = storyboard.vtt(times_s, duration_s=duration_s)
        await put_file(sink, STORYBOARD_NAME, text.encode())


async def _thumbnails(
    rendition: RenditionFiles, init: bytes, storyboard: Storyboard
) -> AsyncIterator[tuple[bytes, list[bool], list[int], list[float]]]:
    """Read the segments with thumbnails one by one.

    Yields the bytes of each segment without `init`, for each of its frames whether it is an IDR
    picture, the places of the thumbnails among these frames, and their times in seconds of the
    film.
    """
    playlist = rendition.playlist
    last_s = -storyboard.interval_s / 2
    ends_s = [*playlist.starts_s[1:], playlist.duration_s + storyboard.interval_s / 2]
    for entry, start_s, next_s in zip(playlist.segments, playlist.starts_s, ends_s, strict=True):
        if not storyboard.chosen([start_s], last_s=last_s, next_s=next_s):
            continue
        data = await rendition.read(entry.uri)
        with refusing_unreadable():
            frames = [(start_s + at_s, is_idr) for at_s, is_idr in shown_frames(init, data)]
        keys_s = [at_s for at_s, is_idr in frames if is_idr] or [start_s]
        end_s = start_s + entry.duration_s
        # The end of the film must be close to its last key frame, because no other follows.
        following_s = end_s if entry is not playlist.segments[-1] else 2 * end_s - keys_s[-1]
        distance_s = max(after - at for at, after in pairwise([*keys_s, following_s]))
        has_enough = storyboard.shows_enough(distance_s)
        candidates_s = keys_s if has_enough else [at_s for at_s, _ in frames]
        chosen_s = storyboard.chosen(candidates_s, last_s=last_s, next_s=next_s)
        numbers = [number for number, (at_s, _) in enumerate(frames) if at_s in chosen_s]
        yield data, [is_idr for _, is_idr in frames], numbers, chosen_s
        last_s = chosen_s[-1]
