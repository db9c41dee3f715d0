"""Make the storyboard of a finished rendition: thumbnails for the seek bar, tiled into sprites.

Limits: H.264 as this package writes or copies it. One segment is in memory, and those that a sprite
is made of are in the working folder.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path

from portal.telemetry.tracing import span
from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.command import (
    BARE,
    KEY_FRAMES_ONLY,
    general_options,
    jpeg_output,
    own_file,
)
from portal.transcoding.encoding.progress import OnProgress, PassProgress
from portal.transcoding.encoding.segment_upload import SegmentUpload, Sink, pass_folder
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.cmaf import SegmentError, shown_frames
from portal.transcoding.packaging.hls import INIT_NAME, MediaPlaylist
from portal.transcoding.planning.storyboard import (
    SPRITE_PATTERN,
    STORYBOARD_NAME,
    TILES,
    TILING,
    Storyboard,
)

_SPRITE_SOURCE = "frames.mp4"
_SPRITE_LIMIT_S = 300.0
_QUALITY = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class RenditionFiles:
    """A finished video rendition: its playlist, and how to read a file that this names."""

    playlist: MediaPlaylist
    read: Callable[[str], Awaitable[bytes]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Segment:
    """A segment that thumbnails are taken from.

    `are_idr` tells of each frame in the order shown, `chosen` are the numbers of some of them.
    """

    data: bytes
    are_idr: Sequence[bool]
    chosen: Sequence[int]


class _Sprite:
    """The frames of one sprite, and in `source` the segments that they are in."""

    def __init__(self, source: Path, init: bytes) -> None:
        self.source = source
        self.are_idr: list[bool] = []
        self.chosen: list[int] = []
        source.write_bytes(init)

    def add(self, segment: _Segment, chosen: Sequence[int]) -> None:
        self.chosen += [len(self.are_idr) + number for number in chosen]
        self.are_idr += segment.are_idr
        with self.source.open("ab") as file:
            file.write(segment.data)

    def arguments(self, name: str, storyboard: Storyboard) -> tuple[str, ...]:
        """Nothing but IDR pictures is decoded where they are all there is to show."""
        from_keys = all(self.are_idr[number] for number in self.chosen)
        numbers = [sum(self.are_idr[:it]) for it in self.chosen] if from_keys else self.chosen
        chosen = "+".join(f"eq(n,{number})" for number in numbers)
        scale = f"scale={storyboard.width}:{storyboard.height}:out_range=pc"
        return (
            *general_options(),
            *(*(KEY_FRAMES_ONLY if from_keys else ()), *own_file(self.source.name)),
            *("-map", "0:v:0", *BARE, "-vf", f"select='{chosen}',{scale},setsar=1,{TILING}"),
            *jpeg_output(name, _QUALITY),
        )


async def make_storyboard(
    rendition: RenditionFiles,
    storyboard: Storyboard,
    *,
    sink: Sink,
    work_dir: Path,
    on_progress: OnProgress,
) -> None:
    """Put the sprites of a rendition's thumbnails, and then the WebVTT that leads to them.

    Raises TranscodeFailed, DiskFull, or whatever the rendition's reader or the sink raised.
    """
    duration_s = rendition.playlist.duration_s
    progress = PassProgress(on_progress, duration_s)
    progress.next_run(ends_at=1.0)
    times_s: list[float] = []
    with pass_folder(work_dir) as folder, span("thumbnails"):
        upload, source = SegmentUpload(sink, folder), folder / _SPRITE_SOURCE
        init = await rendition.read(INIT_NAME)
        sprite, names = _Sprite(source, init), (SPRITE_PATTERN % it for it in count())
        async for segment, chosen_s in _segments(rendition, init, storyboard):
            times_s += chosen_s
            rest = segment.chosen
            while rest:
                room = TILES - len(sprite.chosen)
                await asyncio.to_thread(sprite.add, segment, rest[:room])
                rest = rest[room:]
                if len(sprite.chosen) == TILES:
                    await _put_sprite(sprite, next(names), storyboard, upload)
                    await progress.encoded(chosen_s[-1])
                    sprite = _Sprite(source, init)
        if sprite.chosen:
            await _put_sprite(sprite, next(names), storyboard, upload)
        text = storyboard.vtt(times_s, duration_s=duration_s)
        await upload.put(STORYBOARD_NAME, text.encode())


async def _segments(
    rendition: RenditionFiles, init: bytes, storyboard: Storyboard
) -> AsyncIterator[tuple[_Segment, list[float]]]:
    """The segments that thumbnails are in, read one by one, and the times of these."""
    playlist, last_s = rendition.playlist, -storyboard.interval_s / 2
    ends_s = [*playlist.starts_s[1:], playlist.duration_s + storyboard.interval_s / 2]
    for entry, start_s, next_s in zip(playlist.segments, playlist.starts_s, ends_s, strict=True):
        if not storyboard.chosen([start_s], last_s=last_s, next_s=next_s):
            continue
        data = await rendition.read(entry.uri)
        try:
            frames = [(start_s + at_s, is_idr) for at_s, is_idr in shown_frames(init, data)]
        except SegmentError as exc:
            raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=str(exc)) from exc
        keys_s = [at_s for at_s, is_idr in frames if is_idr] or [start_s]
        end_s = start_s + entry.duration_s
        # After the last one of all there is none that the end could be nearer to.
        following_s = end_s if entry is not playlist.segments[-1] else 2 * end_s - keys_s[-1]
        distance_s = max(after - at for at, after in pairwise([*keys_s, following_s]))
        has_enough = storyboard.shows_enough(distance_s)
        of_those_s = keys_s if has_enough else [at_s for at_s, _ in frames]
        chosen_s = storyboard.chosen(of_those_s, last_s=last_s, next_s=next_s)
        numbers = [number for number, (at_s, _) in enumerate(frames) if at_s in chosen_s]
        yield _Segment(data=data, are_idr=[it for _, it in frames], chosen=numbers), chosen_s
        last_s = chosen_s[-1]


async def _put_sprite(
    sprite: _Sprite, name: str, storyboard: Storyboard, upload: SegmentUpload
) -> None:
    arguments = sprite.arguments(name, storyboard)
    await ffmpeg.run(arguments, timeout_s=_SPRITE_LIMIT_S, cwd=upload.work_dir)
    path = upload.work_dir / name
    if not await asyncio.to_thread(path.exists):
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail="no sprite was made")
    await upload.put(name, path)
