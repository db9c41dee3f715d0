"""What the upload page finds out about a file by itself: right, and bounded for any file."""

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from front_end import install_tools, run_node
from running_portal import run_ffmpeg

SCRIPT = Path(__file__).with_name("examine_file.mjs")
MIB = 2**20
# "Some megabytes", whatever a file claims.
MAX_READ_BYTES = 12 * MIB
MAX_TOOK_MS = 3_000
NO_LIMITS = {"size_bytes": 0, "duration_s": 0, "pixels": 0}


def examine(*paths: Path, **limits: int) -> list[dict[str, Any]]:
    """Examine files as the page does."""
    install_tools()
    told = run_node(str(SCRIPT), json.dumps(NO_LIMITS | limits), *map(str, paths))
    return [json.loads(line) for line in told.splitlines()]


def weights(found: dict[str, Any]) -> dict[str, str]:
    return {finding["code"]: finding["weight"] for finding in found["findings"]}


EXPECTED: dict[str, dict[str, str]] = {
    "plain.mp4": {},
    "silent.mp4": {"no_audio": "warn"},
    "sound.mp4": {"no_video_track": "refuse"},
    "hdr.mp4": {"hdr": "info"},
    "surround.mov": {"surround": "info"},
    "old.mov": {"unknown_codec": "info"},
    "protected.mp4": {"encrypted": "refuse"},
    "fragmented.mp4": {},
    "upright.mp4": {"portrait": "info"},
    "cut.mp4": {"truncated": "refuse"},
    "cut-media.mp4": {"end_missing": "warn"},
    "notes.mp4": {"not_a_video": "refuse"},
}


def test_each_file_is_seen_for_what_it_is(upload_files: dict[str, Path]) -> None:
    assert set(upload_files) == set(EXPECTED)
    found = dict(zip(upload_files, examine(*upload_files.values()), strict=True))
    assert {name: weights(facts) for name, facts in found.items()} == EXPECTED
    assert found["plain.mp4"]["words"] == "320 × 180 · 0:01 · 30 fps · H.264 · mono"  # noqa: RUF001
    assert found["upright.mp4"]["words"].startswith("180 × 320")  # noqa: RUF001
    assert found["surround.mov"]["words"].endswith("5.1 sound")
    assert found["hdr.mp4"]["facts"]["video"]["transfer"] == "pq"
    assert found["fragmented.mp4"]["facts"]["duration_s"] is None
    assert max(facts["read_bytes"] for facts in found.values()) < MIB


def test_limits_of_the_portal_are_held_against_a_file(upload_files: dict[str, Path]) -> None:
    (short,) = examine(upload_files["plain.mp4"], duration_s=2)
    assert weights(short) == {}
    (large,) = examine(upload_files["plain.mp4"], pixels=320 * 180 - 1)
    assert weights(large) == {"too_large": "refuse"}
    (fitting,) = examine(upload_files["plain.mp4"], pixels=320 * 180)
    assert weights(fitting) == {}


def test_longer_video_than_the_portal_takes_is_refused(tmp_path: Path) -> None:
    picture = ("-f", "lavfi", "-i", "color=s=32x32:r=1:d=5")
    (found,) = examine(run_ffmpeg(tmp_path / "long.mp4", *picture, "-c:v", "libx264"), duration_s=4)
    assert weights(found) == {"too_long": "refuse"}


def test_tracks_of_other_kinds_dont_disturb_the_frame_rate(
    upload_files: dict[str, Path], tmp_path: Path
) -> None:
    options = ("-c", "copy", "-timecode", "01:00:00:00")
    plain = str(upload_files["plain.mp4"])
    (found,) = examine(run_ffmpeg(tmp_path / "timecode.mov", "-i", plain, *options))
    assert "30 fps" in found["words"]


def box(kind: bytes, body: bytes, *, size: int | None = None) -> bytes:
    """An ISO box; the size may lie."""
    return struct.pack(">I", 8 + len(body) if size is None else size) + kind + body


def _many(count: int) -> bytes:
    return box(b"free", b"") * count


def _moov(body: bytes) -> bytes:
    return box(b"ftyp", b"isom\0\0\0\0") + box(b"moov", body)


def _table(kind: bytes, claimed: int) -> bytes:
    return box(kind, struct.pack(">III", 0, 0, claimed))


def _stsd(body: bytes) -> bytes:
    handler = box(b"hdlr", bytes(8) + b"vide" + bytes(12))
    header = box(b"tkhd", bytes(84))
    media = box(b"mdhd", struct.pack(">IIIIII", 0, 0, 0, 1000, 1000, 0))
    stbl = box(b"stbl", box(b"stsd", body) + _table(b"stsz", 2**32 - 1))
    return _moov(box(b"trak", header + box(b"mdia", media + handler + box(b"minf", stbl))))


# Made to keep whoever reads them busy, by what is wrong with them.
HOSTILE: dict[str, Callable[[], bytes]] = {
    "boxes without end": lambda: _many(200_000),
    "boxes without end in the index": lambda: _moov(_many(200_000)),
    "tracks without end": lambda: _moov(box(b"trak", box(b"mdia", b"")) * 100_000),
    "a description of megabytes": lambda: _stsd(bytes(8 * MIB)),
    "descriptions of megabytes": lambda: _moov(box(b"mvhd", bytes(200_000)) * 100),
    "four thousand million descriptions": lambda: _stsd(struct.pack(">II", 0, 2**32 - 1)),
    "an entry of no size": lambda: _stsd(struct.pack(">II", 0, 1) + box(b"avc1", b"", size=0)),
    "boxes in boxes": lambda: _stsd(_nested(20_000)),
    "an entry beyond the end": lambda: _stsd(
        struct.pack(">II", 0, 1) + box(b"avc1", bytes(78), size=2**31)
    ),
    "sizes of 64 bits": lambda: struct.pack(">I4sQ", 1, b"moov", 2**63) + bytes(100),
    "noise": lambda: random.Random(1).randbytes(MIB),  # noqa: S311
    "nothing but zeroes": lambda: bytes(MIB),
}


def _nested(depth: int) -> bytes:
    entry = struct.pack(">II", 0, 1)
    boxes = b"".join(struct.pack(">I4s", 8 * (depth - n), b"sinf") for n in range(depth))
    return entry + box(b"avc1", bytes(78) + boxes)


def test_hostile_files_are_read_a_little_and_given_up(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{number}.mp4" for number, name in enumerate(HOSTILE)}
    for name, path in paths.items():
        path.write_bytes(HOSTILE[name]())
    found = dict(zip(paths, examine(*paths.values()), strict=True))
    greedy = {name: facts["read_bytes"] for name, facts in found.items()}
    assert max(greedy.values()) < MAX_READ_BYTES, greedy
    slow = {name: facts["took_ms"] for name, facts in found.items()}
    assert max(slow.values()) < MAX_TOOK_MS, slow


def test_index_behind_gigabytes_is_found_with_a_few_reads(
    upload_files: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "large.mp4"
    size_bytes = 3 * 2**30
    with path.open("wb") as file:
        file.write(struct.pack(">I4sQ", 1, b"free", size_bytes))
        file.truncate(size_bytes)
        file.seek(size_bytes)
        file.write(upload_files["plain.mp4"].read_bytes())
    (found,) = examine(path)
    assert weights(found) == {}
    assert found["read_bytes"] < MIB
