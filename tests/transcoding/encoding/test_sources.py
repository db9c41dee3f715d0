"""Each kind of source gives the same card: complete, upright, in sync, in the right colours."""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from decoded_media import RGB
from media_recipes import (
    CORNERS,
    X265,
    MakeMedia,
    as_hdr,
    as_yuv,
    beeps,
    card,
    make_card,
    with_late,
)
from mp4_writer import box, insert_in_sample_entry
from published import Studio
from published_checks import check_published

from portal.transcoding.errors import Note

# The card in a size with one rung, for tests that are not about several renditions.
SMALL = card(size="320x180")
A, B, C, D = CORNERS
BLACK: RGB = (0, 0, 0)
ON_ITS_SIDE = ("-display_rotation", "90")
UPRIGHT = (B, D, A, C)
UNTAGGED = "setparams=colorspace=unknown:range=unknown"
# Dolby Vision's configuration (version 1.0): profile 8, level 4, RPU and base layer, and a base
# layer that is HLG (8.4).
_PROFILE_8_LEVEL_4 = 8 << 9 | 4 << 3 | 0b101
DOLBY_VISION_8_4 = box(b"dvvC", struct.pack(">BBHB", 1, 0, _PROFILE_8_LEVEL_4, 4 << 4), bytes(19))


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Kind of source. `tolerance` is that of colours, in steps of 1/255."""

    name: str
    make: Callable[[MakeMedia], Path]
    corners: Sequence[RGB] = CORNERS
    tolerance: float = 8
    in_sync: bool = True
    is_hdr: bool = False


def row(
    name: str, *options: str, extension: str = "mp4", remux: Sequence[str] = (), **recipe: object
) -> Row:
    """Describe a card, which may be copied into another file; the recipe has members of `Row`."""
    members = ("corners", "tolerance", "in_sync", "is_hdr")
    fields = {key: recipe.pop(key) for key in members if key in recipe}

    def make(media: MakeMedia) -> Path:
        path = make_card(media, f"{name}.{extension}", *options, **recipe)
        return media("again.mp4", *remux, "-i", str(path), "-c", "copy") if remux else path

    return Row(name=name, make=make, **fields)


def late(name: str, late_s: float, picture: str) -> Row:
    """Describe a card whose picture begins late, by an empty edit."""

    def make(media: MakeMedia) -> Path:
        on_time = make_card(media, "card.mp4", picture=picture)
        return with_late(media, f"{name}.mp4", on_time, "0:v", late_s)

    return Row(name=name, make=make)


def hdr(name: str, transfer: str) -> Row:
    tags = f"colorprim=bt2020:colormatrix=bt2020nc:transfer={transfer}"
    params = ("-x265-params", f"log-level=error:{tags}")
    return row(
        name, *params, picture=SMALL, codec=X265, yuv=as_hdr(transfer), tolerance=24, is_hdr=True
    )


def dolby_vision_of_a_phone(media: MakeMedia) -> Path:
    """Make a film in HLG with Dolby Vision's configuration, turned by its display matrix."""
    tags = "colorprim=bt2020:colormatrix=bt2020nc:transfer=arib-std-b67"
    lying = make_card(
        media,
        "hlg phone.mov",
        *("-x265-params", f"log-level=error:{tags}"),
        picture=card(size="320x180", rate="30", duration_s=3, flashes_s=(0.5, 2)),
        sound=beeps(duration_s=3, at_s=(0.5, 2)),
        yuv=as_hdr("arib-std-b67"),
        codec=X265,
    )
    source = media("hlg upright.mov", *ON_ITS_SIDE, "-i", str(lying), "-c", "copy")
    return insert_in_sample_entry(source, b"hvc1", DOLBY_VISION_8_4)


def of_each_kind() -> Iterator[Row]:
    """Yield one or two sources of each kind, which are tested by default."""
    yield row("h264-10bit-422", yuv=as_yuv("yuv422p10le"))
    yield row("hevc-10bit", picture=SMALL, codec=X265, yuv=as_yuv("yuv420p10le"))
    mpeg4 = ("-c:v", "mpeg4", "-q:v", "2", "-bf", "2")
    yield row("mpeg4-part2", picture=SMALL, codec=mpeg4, yuv=as_yuv(matrix="smpte170m"))
    # The lower left quarter is blue and fully transparent, so it must be black.
    hole = ",format=rgba,drawbox=x=0:y=ih/2:w=iw/2:h=ih/2:c=0x3040c0@0:t=fill:replace=1"
    png = {"codec": ("-c:v", "png"), "yuv": "format=rgba", "extension": "mov"}
    yield row("alpha-png", picture=SMALL + hole, corners=(A, B, BLACK, D), **png)
    yield row("audio-ac3", "-c:a", "ac3", picture=SMALL)
    yield row("audio-22050-hz", picture=SMALL, sound=beeps(rate_hz=22_050))
    yield row("audio-none", picture=SMALL, sound=None, in_sync=False)
    yield row("fragmented", "-g", "25", "-movflags", "frag_keyframe+empty_moov+default_base_moof")
    yield late("picture-late", 0.8, SMALL)
    flashing = {
        "picture": card(size="320x180", flashes_s=(2.5, 6.0)),
        "sound": beeps(at_s=(2.5, 6.0)),
    }
    yield row("start-trimmed", remux=("-ss", "1.3"), **flashing)
    yield Row(
        name="phone-upright-dolby-vision",
        make=dolby_vision_of_a_phone,
        corners=UPRIGHT,
        tolerance=24,
        is_hdr=True,
    )
    mirrored = {"picture": SMALL, "corners": (B, A, D, C)}
    yield row("copyable-mirrored", "-g", "50", remux=("-display_hflip",), **mirrored)
    yield row("odd-size", picture=card(size="323x181"), yuv=as_yuv("yuv444p"))
    wide = {"picture": card(size="240x180"), "yuv": f"{as_yuv()},setsar=4/3"}
    yield row("wide-pixels-rotated", remux=ON_ITS_SIDE, corners=UPRIGHT, **wide)
    yield row("120-fps", picture=card(size="320x180", rate="120"))
    yield row("full-range", picture=SMALL, yuv=as_yuv("yuvj420p", full_range=True))
    sd = f"scale=out_color_matrix=bt601:out_range=tv,format=yuv420p,{UNTAGGED}"
    yield row("untagged-sd-is-bt601", picture=SMALL, yuv=sd)
    yield hdr("pq", "smpte2084")
    yield row("one-frame", picture=card(duration_s=0.04, flashes_s=()), sound=None, in_sync=False)


def more_of_each_kind() -> Iterator[Row]:
    """Yield more sources, which are tested with `-m soak`."""
    prores = ("-c:v", "prores_ks", "-profile:v", "1")
    yield row("prores-422", codec=prores, yuv=as_yuv("yuv422p10le"), extension="mov")
    jfif = as_yuv("yuvj422p", matrix="smpte170m", full_range=True)
    yield row("mjpeg", codec=("-c:v", "mjpeg", "-q:v", "2"), yuv=jfif, extension="mov")
    yield row("av1", codec=("-c:v", "libsvtav1", "-preset", "12", "-svtav1-params", "lp=2"))
    vp9 = ("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "1M")
    yield row("vp9", codec=vp9)
    yield row("rgb", codec=("-c:v", "qtrle"), yuv="format=rgb24", extension="mov")
    yield row("29.97-fps", picture=card(size="320x180", rate="30000/1001"))
    for codec in ("alac", "libopus", "libmp3lame"):
        yield row(f"audio-{codec}", "-c:a", codec, picture=SMALL)
    pcm = ("-c:a", "pcm_s24le")
    high = beeps(rate_hz=192_000)
    yield row("audio-pcm-192000-hz", *pcm, picture=SMALL, sound=high, extension="mov")
    yield late("picture-off-the-frame-grid", 0.05, card(rate="10"))
    yield row("negative-offsets", "-bf", "3", "-movflags", "negative_cts_offsets")
    yield row("tiny", picture=card(size="64x36"), tolerance=12)
    slow = card(size="320x180", rate="1", duration_s=10, flashes_s=(1.0, 8.0), flash_s=1.0)
    yield row("1-fps", picture=slow, sound=beeps(duration_s=10, at_s=(1.0, 8.0)))
    hd = card(size="1280x720", duration_s=2, flashes_s=(0.5, 1.5))
    bt709 = f"scale=out_color_matrix=bt709:out_range=tv,format=yuv422p,{UNTAGGED}"
    sound = beeps(duration_s=2, at_s=(0.5, 1.5))
    yield row("untagged-hd-is-bt709", picture=hd, yuv=bt709, sound=sound)
    tenth = card(duration_s=10, rate="1/10")
    yield row("one-frame-of-a-tenth", picture=tenth, in_sync=False)
    short = card(duration_s=1.5, flashes_s=(0.2, 1.0), flash_s=0.1)
    yield row("under-one-segment", picture=short, sound=beeps(duration_s=1.5, at_s=(0.2, 1.0)))


@pytest.mark.parametrize(
    "source",
    [
        *(pytest.param(row, id=row.name) for row in of_each_kind()),
        *(pytest.param(row, id=row.name, marks=pytest.mark.soak) for row in more_of_each_kind()),
    ],
)
async def test_a_source_is_published_as_the_same_card(source: Row, studio: Studio) -> None:
    published = await studio.publish(source.make(studio.make))
    check_published(
        published, corners=source.corners, tolerance=source.tolerance, in_sync=source.in_sync
    )
    assert (Note.HDR_CONVERTED in published.result.output.notes) == source.is_hdr
