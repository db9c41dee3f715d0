"""Pictures that change their size within a film are fitted into the largest size, undistorted."""

from pathlib import Path

import av
import numpy as np
import pytest
from decoded_media import packets
from media_recipes import CORNERS, MakeMedia, as_yuv, card, join_streams, lavfi
from mp4_writer import movie, sample_sizes, track
from published import Published, Studio, Write, frames

from portal.transcoding.errors import Note

BLACK = 16
BRIGHT = 24
RAW = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "5", "-level:v", "4", "-f", "h264")


def make_parts(make_media: MakeMedia, *sizes: str, rotation: str = "0") -> Path:
    """Make a film of half a second of each size, with parameter sets within the stream."""
    parts = [
        make_media(
            f"{size}.h264",
            *lavfi(card(size=size, rate="10", duration_s=0.5, flashes_s=())),
            *("-vf", as_yuv(), *RAW),
        )
        for size in sizes
    ]
    plain = join_streams(make_media, *parts, rate="10")
    turned = ("-display_rotation", rotation, "-i", str(plain), "-c", "copy")
    return plain if rotation == "0" else make_media("turned.mp4", *turned)


def picture_box(frame: av.VideoFrame) -> tuple[int, int, int, int]:
    """Return left, top, width and height of the part that isn't black, which is the card."""
    lit = frame.to_ndarray(format="gray") > BRIGHT
    rows, columns = (np.flatnonzero(lit.any(axis=axis)).tolist() for axis in (1, 0))
    return columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1


def published_frames(published: Published) -> list[av.VideoFrame]:
    (rendition,) = published.result.renditions
    return frames(published.folder, rendition.name)


@pytest.mark.parametrize(
    ("sizes", "rotation", "size", "boxes"),
    [
        (("96x64", "64x96"), "0", (96, 64), [(0, 0, 96, 64), (27, 0, 42, 64)]),
        (("48x32", "96x64"), "0", (96, 64), [(0, 0, 96, 64), (0, 0, 96, 64)]),
        (("96x64", "96x48"), "0", (96, 64), [(0, 0, 96, 64), (0, 8, 96, 48)]),
        (("96x64", "64x96"), "90", (64, 96), [(0, 0, 64, 96), (0, 27, 64, 42)]),
    ],
)
async def test_each_part_keeps_its_shape_in_the_largest_size(
    sizes: tuple[str, ...],
    rotation: str,
    size: tuple[int, int],
    boxes: list[tuple[int, int, int, int]],
    studio: Studio,
) -> None:
    published = await studio.publish(make_parts(studio.make, *sizes, rotation=rotation))

    pictures = published_frames(published)
    assert [frame.time for frame in pictures] == pytest.approx([n / 10 for n in range(10)])
    assert {(frame.width, frame.height) for frame in pictures} == {size}
    for frame, expected in zip((pictures[2], pictures[7]), boxes, strict=True):
        assert picture_box(frame) == pytest.approx(expected, abs=2)
    assert Note.SIZE_CHANGES_FITTED in published.result.output.notes
    assert not any(rung.copied for rung in published.result.plan.video)


async def test_bars_are_black_and_the_picture_between_them_is_true(studio: Studio) -> None:
    published = await studio.publish(make_parts(studio.make, "96x64", "64x96"))

    last = published_frames(published)[-1]
    luma, blue, red = (bytes(plane) for plane in last.planes)
    strides = [plane.line_size for plane in last.planes]
    assert luma[32 * strides[0] + 10] == pytest.approx(BLACK, abs=2)
    assert blue[16 * strides[1] + 5] == pytest.approx(128, abs=2)
    assert red[16 * strides[2] + 5] == pytest.approx(128, abs=2)
    red_part, green_part, blue_part = (part / 255 for part in CORNERS[0])
    expected = 16 + 219 * (0.2126 * red_part + 0.7152 * green_part + 0.0722 * blue_part)
    assert luma[8 * strides[0] + 34] == pytest.approx(expected, abs=4)


def entry_and_samples(make_media: MakeMedia, size: str) -> tuple[bytes, list[bytes]]:
    """Return the sample entry of a short card, and its samples."""
    source = lavfi(card(size=size, rate="25", duration_s=0.2, flashes_s=()))
    encoding = (*RAW[:6], "-bf", "0", "-level:v", "4")
    path = make_media(f"{size}.mp4", *source, "-vf", as_yuv(), *encoding)
    content = path.read_bytes()
    at = content.index(b"avc1", content.index(b"stsd")) - 4
    length = int.from_bytes(content[at : at + 4])
    return content[at : at + length], [packet.data for packet in packets(path)]


async def test_sample_entries_of_other_sizes_are_fitted(studio: Studio, write: Write) -> None:
    small, small_samples = entry_and_samples(studio.make, "48x32")
    upright, upright_samples = entry_and_samples(studio.make, "64x96")
    first = b"".join(small_samples)
    film = track(
        small,
        sample_sizes([len(sample) for sample in (*small_samples, *upright_samples)]),
        frames=10,
        size=(48, 32),
        later=(upright, 5, len(first)),
    )
    source = write(movie(first + b"".join(upright_samples), film, duration_ms=400))

    published = await studio.publish(source)

    pictures = published_frames(published)
    assert [frame.time for frame in pictures] == pytest.approx([n / 25 for n in range(10)])
    assert {(frame.width, frame.height) for frame in pictures} == {(64, 96)}
    assert picture_box(pictures[2]) == pytest.approx((0, 27, 64, 42), abs=2)
    assert picture_box(pictures[7]) == pytest.approx((0, 0, 64, 96), abs=2)
    assert Note.SIZE_CHANGES_FITTED in published.result.output.notes
