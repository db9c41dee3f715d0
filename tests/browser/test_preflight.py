"""What the upload page finds out about a file by itself."""

import json
import struct
from pathlib import Path
from typing import Any

from front_end import install_tools, run_node
from running_portal import run_ffmpeg

SCRIPT = Path(__file__).with_name("examine_file.mjs")
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


def test_index_behind_gigabytes_is_found(upload_files: dict[str, Path], tmp_path: Path) -> None:
    path, plain = tmp_path / "large.mp4", upload_files["plain.mp4"].read_bytes()
    type_bytes = int.from_bytes(plain[:4], "big")
    size_bytes = 3 * 2**30
    with path.open("wb") as file:
        file.write(plain[:type_bytes] + struct.pack(">I4sQ", 1, b"free", size_bytes))
        file.seek(type_bytes + size_bytes)
        file.write(plain[type_bytes:])
    (found,) = examine(path)
    assert weights(found) == {}
