"""Files made to do harm, by what they do."""

import struct
import zlib
from collections.abc import Callable

from mp4_writer import (
    FILE_TYPE,
    FRAME_MS,
    MEDIA_AT,
    MIB,
    box,
    empty_track,
    fragments,
    index,
    movie,
    picture_entry,
    png,
    png_movie,
    sample_sizes,
    table,
    track,
    zeros,
)

from portal.transcoding.errors import RejectCode


def nested(kind: bytes, depth: int) -> bytes:
    return b"".join(struct.pack(">I4s", 8 * (depth - level), kind) for level in range(depth))


def compressed(moov: bytes, claimed: int) -> bytes:
    """A movie whose index is packed, as QuickTime once did."""
    packed = box(b"cmvd", struct.pack(">I", claimed), moov)
    return FILE_TYPE + box(b"moov", box(b"cmov", box(b"dcom", b"zlib"), packed))


def claiming(frames: int, *, kind: bytes = b"png ", size_each: int = 1) -> bytes:
    """A few bytes that claim to be so many samples."""
    film = track(
        picture_entry(kind, 64, 64),
        sample_sizes([], count=frames, same=size_each),
        frames=frames,
        media_at=MEDIA_AT,
    )
    return movie(bytes(100), film, duration_ms=min(frames * FRAME_MS, 2**32 - 1))


def sequence_parameters(width: int, height: int) -> bytes:
    """An H.264 Baseline SPS (ITU-T H.264, 7.3.2.1.1) for a picture of any size."""

    def golomb(value: int) -> str:
        bits = f"{value + 1:b}"
        return "0" * (len(bits) - 1) + bits

    values = [0, 0, 2, 1]  # id, log2 of frame numbers, order type, references
    bits = "".join(golomb(value) for value in values) + "0"
    bits += golomb(width // 16 - 1) + golomb(height // 16 - 1) + "1100" + "1"
    bits += "0" * (-len(bits) % 8)
    packed = int(bits, 2).to_bytes(len(bits) // 8, "big")
    return b"\x67\x42\x00\x33" + packed


def h264_claiming(width: int, height: int, *, entry: tuple[int, int]) -> bytes:
    sps, pps = sequence_parameters(width, height), b"\x68\xce\x3c\x80"
    config = b"\x01\x42\x00\x33\xff\xe1" + struct.pack(">H", len(sps)) + sps
    config += b"\x01" + struct.pack(">H", len(pps)) + pps
    slice_ = b"\x65\x88\x84\x00\x10\xff\xfe\xf6\xf0\xfe\x05\x36\x56\x04\x50\x96\x7b\x3f"
    media = struct.pack(">I", len(slice_)) + slice_
    film = track(
        picture_entry(b"avc1", *entry, box(b"avcC", config)),
        sample_sizes([len(media)]),
        frames=1,
        media_at=MEDIA_AT,
    )
    return movie(media, film)


def edit_list(rows: int, *, frames: int, count: int | None = None) -> bytes:
    """The same first moment over and over."""
    return png_movie(
        64,
        64,
        frames=frames,
        edits=box(b"edts", table(b"elst", "IIHH", *[(frames * FRAME_MS, 0, 1, 0)] * rows)),
    )


def one_fragment(samples: int, runs: int = 1) -> bytes:
    extends = box(b"mvex", box(b"trex", struct.pack(">IIIIII", 0, 1, 1, FRAME_MS, 1, 0)))
    piece = box(
        b"traf",
        box(b"tfhd", struct.pack(">II", 0x020000, 1)),
        box(b"trun", struct.pack(">II", 0, samples)),
    )
    fragment = box(b"moof", box(b"mfhd", bytes(8)), piece * runs)
    return FILE_TYPE + index(empty_track(), extends) + fragment + box(b"mdat", bytes(100))


def growing() -> bytes:
    """The second picture is the largest a side may be; only the first is looked at."""
    pictures = [png(64, 64), png(16_000, 16_000)]
    film = track(
        picture_entry(b"png ", 64, 64),
        sample_sizes([len(picture) for picture in pictures]),
        frames=2,
        media_at=MEDIA_AT,
    )
    return movie(b"".join(pictures), film)


def blank_8k(frames: int) -> bytes:
    """Frames of QuickTime's run lengths that say that nothing has changed."""
    unchanged = bytes(8)
    film = track(
        picture_entry(b"rle ", 8192, 4320),
        sample_sizes([8] * frames),
        frames=frames,
        size=(8192, 4320),
        media_at=MEDIA_AT,
    )
    return movie(unchanged * frames, film)


def many_tracks(number: int) -> bytes:
    picture = png(64, 64)
    tracks = [
        track(
            picture_entry(b"png ", 64, 64),
            sample_sizes([len(picture)]),
            frames=1,
            media_at=MEDIA_AT,
            number=place + 1,
        )
        for place in range(number)
    ]
    return movie(picture, *tracks)


HOSTILE: dict[str, tuple[Callable[[], bytes], RejectCode]] = {
    "huge sample entry": (
        lambda: movie(
            bytes(64),
            track(
                picture_entry(b"avc1", 65535, 65535),
                sample_sizes([64]),
                frames=1,
                media_at=MEDIA_AT,
            ),
        ),
        RejectCode.TOO_LARGE,
    ),
    "huge picture in a small entry": (
        lambda: h264_claiming(65536, 65536, entry=(64, 64)),
        RejectCode.TOO_LARGE,
    ),
    "long and low": (lambda: png_movie(40_000, 8), RejectCode.TOO_LARGE),
    "a picture of 1.2 GB in 1.2 MB": (lambda: png_movie(20_000, 20_000), RejectCode.TOO_LARGE),
    "100 000 tracks": (lambda: movie(b"", *[empty_track()] * 100_000), RejectCode.DAMAGED),
    "a million empty tracks": (lambda: movie(b"", *[box(b"trak")] * 1_000_000), RejectCode.DAMAGED),
    "2^31 samples and no sizes": (
        lambda: movie(
            b"",
            track(
                picture_entry(b"png ", 64, 64), sample_sizes([], count=2**31), frames=1, media_at=64
            ),
        ),
        RejectCode.DAMAGED,
    ),
    "2^31 samples of one byte": (lambda: claiming(2**31 - 1), RejectCode.ZERO_DURATION),
    "50 million samples": (lambda: claiming(50_000_000), RejectCode.TRUNCATED),
    "a million boxes in each other": (
        lambda: FILE_TYPE + nested(b"moov", 1_000_000),
        RejectCode.DAMAGED,
    ),
    "boxes in each other in the index": (
        lambda: FILE_TYPE + box(b"moov", nested(b"udta", 200_000)),
        RejectCode.DAMAGED,
    ),
    "tracks in tracks": (
        lambda: FILE_TYPE + box(b"moov", nested(b"trak", 200_000)),
        RejectCode.NO_VIDEO_TRACK,
    ),
    "boxes of no size": (lambda: FILE_TYPE + bytes(8 * MIB), RejectCode.NOT_A_VIDEO),
    "a million free boxes": (
        lambda: FILE_TYPE + struct.pack(">I4s", 8, b"free") * 1_000_000,
        RejectCode.NOT_A_VIDEO,
    ),
    "a box larger than any disk": (
        lambda: FILE_TYPE + struct.pack(">I4sQ", 1, b"moov", 2**63 - 1) + bytes(1000),
        RejectCode.TRUNCATED,
    ),
    "an index that claims to end before it begins": (
        lambda: FILE_TYPE + struct.pack(">I4sQ", 1, b"moov", 3) + bytes(1000),
        RejectCode.NOT_A_VIDEO,
    ),
    "a packed index of 900 MB": (
        lambda: compressed(zeros(900 * MIB), 900 * MIB),
        RejectCode.NOT_A_VIDEO,
    ),
    "a packed index that claims 4 GB": (
        lambda: compressed(zeros(MIB), 2**32 - 1),
        RejectCode.DAMAGED,
    ),
    "a packed index of nested boxes": (
        lambda: compressed(zlib.compress(nested(b"moov", 1_000_000)), 8_000_000),
        RejectCode.DAMAGED,
    ),
    "a fragment of 2^31 samples": (lambda: one_fragment(2**31 - 1), RejectCode.DAMAGED),
    "fragments that fill the memory": (lambda: one_fragment(20_000_000, 20), RejectCode.DAMAGED),
    "three million edits": (lambda: edit_list(3_000_000, frames=1), RejectCode.DAMAGED),
    "a thousand frames five thousand times": (
        lambda: edit_list(5000, frames=1000),
        RejectCode.DAMAGED,
    ),
    "a million frames of a byte": (
        lambda: movie(
            bytes(1_000_000),
            track(
                picture_entry(b"avc1", 64, 64, box(b"avcC", b"\x01\x42\x00\x1e\xff\xe0\x00")),
                sample_sizes([], count=1_000_000, same=1),
                frames=1_000_000,
                media_at=MEDIA_AT,
            ),
        ),
        RejectCode.DAMAGED,
    ),
}
SLOW = {"a packed index of 900 MB", "50 million samples", "fragments that fill the memory"}

PLAYABLE: dict[str, Callable[[], bytes]] = {
    "8K pictures in a kilobyte each": lambda: png_movie(8192, 4320, frames=3),
    "20 000 empty 8K frames": lambda: blank_8k(20_000),
    "pictures that grow": growing,
    "100 000 fragments": lambda: fragments(100_000),
    "300 tracks": lambda: many_tracks(300),
    "an edit list that claims 2^31 rows": lambda: png_movie(
        64, 64, edits=box(b"edts", table(b"elst", "IIHH", (FRAME_MS, 0, 1, 0), count=2**31))
    ),
}
