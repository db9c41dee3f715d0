"""Inspection of a file in the browser before its upload."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from front_end import install_tools, run_node
from mp4_writer import box, insert_in_sample_entry
from running_portal import run_ffmpeg

SCRIPT = Path(__file__).with_name("examine_file.mjs")
PICTURE = ("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30:duration=1")
SOUND = ("-f", "lavfi", "-i", "sine=duration=1")
H264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
PQ = "setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc"
HEVC = ("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none")
ENCRYPTION = ("-encryption_scheme", "cenc-aes-ctr", "-encryption_key", "0" * 32)
FIVE_ONE = "[1]pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0[a]"
FIRST_AND_SECOND = ("-map", "[first]", "-map", "[second]")
TWO_VIEWS = (
    "-filter_complex",
    "color=s=160x90:duration=1[first];testsrc2=s=320x180:duration=1[second]",
    *FIRST_AND_SECOND,
)
STILL_FIRST = (
    "-filter_complex",
    "color=s=1280x720:r=1:duration=1[first];testsrc2=s=320x180:duration=1[second]",
    *FIRST_AND_SECOND,
)
COPY_PLAIN = ("-i", "plain.mp4", "-c", "copy")
# Arguments of FFmpeg for each file, and the findings in it by weight.
FILES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "plain.mp4": ((*PICTURE, *SOUND, *H264), {}),
    "silent.mp4": ((*PICTURE, *H264), {"no_audio": "warn"}),
    "sound.mp4": ((*SOUND, "-c:a", "aac"), {"no_video_track": "refuse"}),
    "hdr.mp4": (
        (*PICTURE, *SOUND, "-vf", PQ, *HEVC, "-pix_fmt", "yuv420p10le"),
        {"hdr": "info"},
    ),
    "surround.mov": (
        (*PICTURE, *SOUND, "-filter_complex", FIVE_ONE, "-map", "0:v", "-map", "[a]", *H264),
        {"surround": "info"},
    ),
    "old.mov": ((*PICTURE, *SOUND, "-c:v", "mjpeg"), {"unknown_codec": "info"}),
    "protected.mp4": (
        (*PICTURE, *H264, *ENCRYPTION, "-encryption_kid", "0" * 32),
        {"encrypted": "refuse"},
    ),
    "fragmented.mp4": ((*PICTURE, *SOUND, *H264, "-movflags", "frag_keyframe+empty_moov"), {}),
    "upright.mp4": (("-display_rotation", "90", *COPY_PLAIN), {"portrait": "info"}),
    "two-views.mp4": (
        (*SOUND, *TWO_VIEWS, *H264, "-disposition:v", "default"),
        {"other_video": "warn", "no_audio": "warn"},
    ),
    "still-first.mp4": (
        (*SOUND, *STILL_FIRST, *H264),
        {"no_audio": "warn"},
    ),
    "ahead.mp4": ((*COPY_PLAIN, "-movflags", "+faststart"), {}),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    return {
        name: run_ffmpeg(
            folder / name,
            *(str(folder / part) if part == "plain.mp4" else part for part in recipe),
        )
        for name, (recipe, _) in FILES.items()
    }


def examine(*paths: Path, **limits: float) -> list[dict[str, Any]]:
    """Inspect files as the page does."""
    install_tools()
    limits = {"size_bytes": 0, "duration_s": 0, "pixels": 0} | limits
    output = run_node(str(SCRIPT), json.dumps(limits), *map(str, paths))
    return [json.loads(line) for line in output.splitlines()]


def weights(report: dict[str, Any]) -> dict[str, str]:
    return {finding["code"]: finding["weight"] for finding in report["findings"]}


def test_findings_of_each_kind_of_file(files: dict[str, Path]) -> None:
    reports = dict(zip(files, examine(*files.values()), strict=True))
    assert {name: weights(report) for name, report in reports.items()} == {
        name: expected for name, (_, expected) in FILES.items()
    }
    assert reports["plain.mp4"]["words"] == "320 × 180 · 0:01 · 30 fps · H.264 · mono"  # noqa: RUF001
    assert reports["upright.mp4"]["words"].startswith("180 × 320")  # noqa: RUF001
    for name in ("two-views.mp4", "still-first.mp4"):
        assert reports[name]["words"].startswith("320 × 180 · 0:01 · 25 fps")  # noqa: RUF001
    assert reports["surround.mov"]["words"].endswith("5.1 sound")


def test_truncated_and_other_files_are_distinguished_and_a_far_index_is_found(
    files: dict[str, Path], tmp_path: Path
) -> None:
    plain = files["plain.mp4"].read_bytes()
    ahead = files["ahead.mp4"].read_bytes()
    contents = {
        "cut.mp4": plain[: len(plain) * 6 // 10],
        "cut-media.mp4": ahead[: len(ahead) * 6 // 10],
        "notes.mp4": b"These are only notes.\n" * 50,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    type_bytes = int.from_bytes(plain[:4], "big")
    size_bytes = 3 * 2**30
    with (tmp_path / "large.mp4").open("wb") as file:
        file.write(plain[:type_bytes] + struct.pack(">I4sQ", 1, b"free", size_bytes))
        file.seek(type_bytes + size_bytes)
        file.write(plain[type_bytes:])
    reports = examine(*(tmp_path / name for name in (*contents, "large.mp4")))
    expected = [{"truncated": "refuse"}, {"end_missing": "warn"}, {"not_a_video": "refuse"}, {}]
    assert [weights(report) for report in reports] == expected


def test_file_with_a_wrong_extension_is_named_by_its_content(tmp_path: Path) -> None:
    contents = {
        "a Matroska": bytes.fromhex(
            "1a45dfa3a34286810142f7810142f2810442f381084282886d6174726f736b61"
        ),
        "a WebM": bytes.fromhex("1a45dfa39f4286810142f7810142f2810442f381084282847765626d"),
        "an AVI": b"RIFF\0\0\1\0AVI LIST",
        "a WAV": b"RIFF\0\0\1\0WAVEfmt ",
        "an MPEG program stream": b"\0\0\1\xba\x44",
        "an MPEG transport stream": (b"G" + bytes(187)) * 3,
        "an MP3": b"ID3\4\0",
        "a PNG": b"\x89PNG\r\n\x1a\n",
        "a HEIF": b"\0\0\0\x18ftypheic\0\0\0\0heicmif1",
    }
    paths = [tmp_path / f"{name}.mp4" for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        path.write_bytes(content + bytes(500))
    findings = [finding for report in examine(*paths) for finding in report["findings"]]
    assert [finding["title"] for finding in findings] == [
        f"This is {name} file named .mp4" for name in contents
    ]
    assert {finding["weight"] for finding in findings} == {"refuse"}
    assert all("MP4" in finding["text"] for finding in findings)


def test_what_can_not_be_converted_is_reported_before_the_upload(
    files: dict[str, Path], tmp_path: Path
) -> None:
    sounds = {b"apac": "apac", b"mhm1": "mpeg_h", b"ac-4": "ac-4", b".mp3": None}
    plain = files["plain.mp4"].read_bytes().replace(b"esds", b"free")
    paths = []
    for sample_entry in sounds:
        paths.append(tmp_path / f"sound-{len(paths)}.mp4")
        paths[-1].write_bytes(plain.replace(b"mp4a", sample_entry))
    expected = [{code: "warn"} if code else {} for code in sounds.values()]
    for profile, compatibility, weight in (
        (5, 0, {"dolby_vision": "warn"}),
        (8, 1, {"hdr": "info"}),
        (10, 0, {"dolby_vision": "warn"}),
    ):
        record = struct.pack(">BBHB", 1, 0, profile << 9 | 1 << 3 | 0b101, compatibility << 4)
        dolby_vision = box(b"dvcC", record, bytes(19))
        paths.append(insert_in_sample_entry(files["hdr.mp4"], b"hev1", dolby_vision))
        expected.append(weight)
    assert [weights(report) for report in examine(*paths)] == expected


def test_a_clean_aperture_cuts_the_picture(files: dict[str, Path]) -> None:
    sizes = []
    paths = []
    for name, aperture, size in (
        ("plain.mp4", (240, 1, 160, 1, 0, 1, 0, 1), "240 × 160"),  # noqa: RUF001
        ("upright.mp4", (240, 1, 160, 1, 0, 1, 0, 1), "160 × 240"),  # noqa: RUF001
        ("plain.mp4", (400, 1, 160, 1, 0, 1, 0, 1), "320 × 180"),  # noqa: RUF001
        ("plain.mp4", (0, 0, 0, 0, 0, 0, 0, 0), "320 × 180"),  # noqa: RUF001
    ):
        clap = box(b"clap", struct.pack(">8i", *aperture))
        paths.append(insert_in_sample_entry(files[name], b"avc1", clap))
        sizes.append(size)
    words = [report["words"].partition(" · ")[0] for report in examine(*paths)]
    assert words == sizes


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"duration_s": 2, "pixels": 320 * 180}, {}),
        (
            {"duration_s": 0.5, "pixels": 320 * 180 - 1},
            {"too_large": "refuse", "too_long": "refuse"},
        ),
    ],
)
def test_files_over_the_limits_are_refused(
    files: dict[str, Path], limits: dict[str, float], expected: dict[str, str]
) -> None:
    (report,) = examine(files["plain.mp4"], **limits)
    assert weights(report) == expected
