"""Footage as phones write it: upright at once, in time, in colours that every screen shows."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from media_recipes import (
    CORNERS,
    EXACT_TIMES,
    MakeMedia,
    as_hdr,
    as_yuv,
    beeps,
    card,
    jittering,
    make_card,
)
from mp4_writer import box
from published import Publish
from published_checks import check_published

from portal.transcoding.errors import Note
from portal.transcoding.probing.probe import probe

A, B, C, D = CORNERS
ON_ITS_SIDE = (B, D, A, C)
HLG_TAGS = "colorprim=bt2020:colormatrix=bt2020nc:transfer=arib-std-b67"
HEVC_HLG = (
    *("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1"),
    *("-x265-params", f"log-level=error:{HLG_TAGS}"),
)
# Dolby Vision's configuration (version 1.0): profile 8, level 4, RPU and base layer, and a base
# layer that is HLG (8.4).
_PROFILE_8_LEVEL_4 = 8 << 9 | 4 << 3 | 0b101
DOLBY_VISION_8_4 = box(b"dvvC", struct.pack(">BBHB", 1, 0, _PROFILE_8_LEVEL_4, 4 << 4), bytes(19))
CONTAINERS = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"hvc1")


def held_upright(make_media: MakeMedia, name: str, source: Path) -> Path:
    """The sensor lies on its side; the matrix tells."""
    return make_media(name, "-display_rotation", "90", "-i", str(source), "-c", "copy")


def with_dolby_vision(source: Path) -> Path:
    """A copy whose sample entry also has the configuration box; the index has to come last."""
    content, at = bytearray(source.read_bytes()), 0
    assert content.index(b"mdat") < content.index(b"moov")
    for kind in CONTAINERS:
        at = content.index(kind, at) - 4
        size = struct.unpack_from(">I", content, at)[0]
        struct.pack_into(">I", content, at, size + len(DOLBY_VISION_8_4))
        at += 4
    end = at - 4 + struct.unpack_from(">I", content, at - 4)[0] - len(DOLBY_VISION_8_4)
    content[end:end] = DOLBY_VISION_8_4
    made = source.with_name(f"dolby vision {source.name}")
    made.write_bytes(content)
    return made


async def check_upright(source: Path, publish: Publish, *, tolerance: float) -> Sequence[Note]:
    video = (await probe(str(source))).video
    assert (video.width, video.height) == (306, 544)
    assert video.constant_rate
    published = await publish(source)
    assert all(each.height > each.width for each in published.result.renditions)
    check_published(published, corners=ON_ITS_SIDE, tolerance=tolerance, in_sync=True)
    return published.result.notes


@pytest.mark.parametrize("rate", ["30", pytest.param("60", marks=pytest.mark.slow)])
async def test_h264_of_a_phone_held_upright(
    rate: str, make_media: MakeMedia, publish: Publish
) -> None:
    yuv = jittering(as_yuv(), 900)
    lying = make_card(
        make_media, f"phone {rate}.mp4", *EXACT_TIMES, picture=card(rate=rate), yuv=yuv
    )
    source = held_upright(make_media, f"phone {rate} upright.mp4", lying)
    await check_upright(source, publish, tolerance=8)


@pytest.mark.parametrize(
    ("rate", "is_dolby"), [("30", True), ("60", False)], ids=["dolby vision 8.4, 30", "hlg, 60"]
)
async def test_hdr_of_a_phone_held_upright(
    rate: str, is_dolby: bool, make_media: MakeMedia, publish: Publish
) -> None:
    length = {"duration_s": 3, "flashes_s": (0.5, 2)}
    lying = make_card(
        make_media,
        f"hlg phone {rate}.mov",
        picture=card(rate=rate, **length),
        sound=beeps(duration_s=3, at_s=(0.5, 2)),
        yuv=as_hdr("arib-std-b67", tagged=True),
        codec=HEVC_HLG,
    )
    source = held_upright(make_media, f"hlg phone {rate} upright.mov", lying)
    if is_dolby:
        source = with_dolby_vision(source)
    notes = await check_upright(source, publish, tolerance=24)
    assert Note.HDR_CONVERTED in notes
