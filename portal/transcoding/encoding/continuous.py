"""Copy a stored rendition into one fragmented MP4 file whose times are continuous.

Segments of a cut film have the times of the whole film. Here they get those of the cut film. Frames
are decoded before they are shown, because ffmpeg shows all of a track later otherwise.
"""

import asyncio
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.packaging.cmaf import (
    SegmentError,
    first_media_time,
    read_samples,
    time_scale,
)
from portal.transcoding.packaging.fragments import decoded_early, shown_until, write_segment


async def copy_continuously(
    files: RenditionFiles, path: Path, *, is_sound: bool, moves_s: Sequence[Fraction] | None = None
) -> list[Fraction]:
    """Write all segments of a rendition into a file; return by how much each interval was moved.

    `moves_s` are those of another track of the film, with which this one stays in sync. Without
    them each interval of a picture begins where the one before it ends, and those of sound as the
    playlist says, because frames of sound don't end where intervals do. Raises SegmentError,
    struct.error if a time is impossible, or whatever the reader raised.
    """
    init = await files.read_init()
    ticks_per_s = time_scale(init)
    film_at = first_media_time(init)
    end = film_at
    next_decode_at = 0
    moved_s: list[Fraction] = []
    with await asyncio.to_thread(path.open, "wb") as file:
        await asyncio.to_thread(file.write, init)
        for number, segment in enumerate(files.playlist.segments):
            data = await files.read(segment.uri)
            samples, until = read_samples(data, is_sound=is_sound)
            if segment.is_discontinuous or not number:
                if not is_sound:
                    join_at = end
                elif number:
                    join_at = film_at + round(files.playlist.starts_s[number] * ticks_per_s)
                else:
                    # Sound begins with samples before the film, which decoders discard.
                    join_at = 0
                first_at = min(sample.decode_at + sample.offset for sample in samples)
                own_move_s = Fraction(first_at - join_at, ticks_per_s)
                moved_s.append(_move_of(len(moved_s), moves_s, own_move_s))
            move = round(moved_s[-1] * ticks_per_s)
            end = shown_until(samples, until) - move
            # Frames of sound may overlap at a join.
            samples = decoded_early(samples, move=move, earliest=next_decode_at)
            next_decode_at = samples[-1].decode_at + 1
            data = write_segment(number, samples, max(end, next_decode_at))
            await asyncio.to_thread(file.write, data)
    return moved_s


def _move_of(number: int, moves_s: Sequence[Fraction] | None, own_s: Fraction) -> Fraction:
    """Return the move of an interval: that of the other track, or its own."""
    if moves_s is None:
        return own_s
    if number >= len(moves_s):
        raise SegmentError(f"another track has {len(moves_s)} intervals only")
    return moves_s[number]
