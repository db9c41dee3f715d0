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
from portal.transcoding.encoding import command, ffmpeg
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


class _Sprite:
    """The frames of one sprite, and in `source` the segments that they are in.

    `are_idr` tells of each frame in the order shown, `chosen` are the numbers of some of them.
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

    async def put(self, name: str, storyboard: Storyboard, upload: SegmentUpload) -> None:
        """Nothing but IDR pictures is decoded where they are all there is to show."""
        from_keys = all(self.are_idr[number] for number in self.chosen)
        numbers = [sum(self.are_idr[:it]) for it in self.chosen] if from_keys else self.chosen
        chosen = "+".join(f"eq(n,{number})" for number in numbers)
        scale = f"scale={storyboard.width}:{storyboard.height}:out_range=pc"
        filters = f"select='{chosen}',{scale},setsar=1,{TILING}"
        arguments = (
            *command.general_options(),
            *(*(command.KEY_FRAMES_ONLY if from_keys else ()), *command.own_file(self.source.name)),
            *("-map", "0:v:0", *command.BARE, "-vf", filters),
            *command.jpeg_output(name, _QUALITY),
        )
        await ffmpeg.run(arguments, timeout_s=_SPRITE_LIMIT_S, cwd=upload.work_dir)
        path = upload.work_dir / name
        if not await asyncio.to_thread(path.exists):
            raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail="no sprite was made")
        await upload.put(name, path)


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
        async for segment, are_idr, chosen, chosen_s in _segments(rendition, init, storyboard):
            times_s += chosen_s
            while chosen:
                room = TILES - len(sprite.chosen)
                await asyncio.to_thread(sprite.add, segment, are_idr, chosen[:room])
                chosen = chosen[room:]
                if len(sprite.chosen) == TILES:
                    await sprite.put(next(names), storyboard, upload)
                    await progress.encoded(chosen_s[-1])
                    sprite = _Sprite(source, init)
        if sprite.chosen:
            await sprite.put(next(names), storyboard, upload)
        text = storyboard.vtt(times_s, duration_s=duration_s)
        await upload.put(STORYBOARD_NAME, text.encode())


async def _segments(
    rendition: RenditionFiles, init: bytes, storyboard: Storyboard
) -> AsyncIterator[tuple[bytes, list[bool], list[int], list[float]]]:
    """The segments that thumbnails are in, read one by one.

    With each, which of its frames are IDR pictures, and the numbers and times of the thumbnails.
    """
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
        yield data, [is_idr for _, is_idr in frames], numbers, chosen_s
        last_s = chosen_s[-1]
