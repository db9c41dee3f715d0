"""Every kind of source comes out as the same card: whole, upright, in time, in true colours."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from decoded_media import RGB
from media_recipes import (
    BT709_TAGS,
    CORNERS,
    X265,
    MakeMedia,
    as_yuv,
    beeps,
    card,
    make_card,
    with_late,
)
from published import Publish
from published_checks import check_published

SMALL = "320x180"
_A, _B, _C, _D = CORNERS
BLACK: RGB = (0, 0, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One kind of source. `tolerance` is of colours, in steps of 255."""

    name: str
    make: Callable[[MakeMedia], Path]
    corners: Sequence[RGB] = field(default=CORNERS)
    tolerance: float = 8
    in_sync: bool = True


def _row(name: str, *options: str, extension: str = "mp4", **recipe: object) -> Row:
    """A card made in one step; what the row itself is told is taken out of the recipe."""
    kept = {key: recipe.pop(key) for key in ("corners", "tolerance", "in_sync") if key in recipe}
    file = f"{name}.{extension}"
    return Row(name=name, make=lambda media: make_card(media, file, *options, **recipe), **kept)


def _remuxed(
    name: str,
    before: Sequence[str],
    *after: str,
    source: Callable[[MakeMedia], Path] | None = None,
    **kept: object,
) -> Row:
    """The plain card, or another source, put into another file without encoding."""

    def make(media: MakeMedia) -> Path:
        path = source(media) if source else make_card(media, "card.mp4")
        return media(f"{name}.mp4", *before, "-i", str(path), "-c", "copy", *after)

    return Row(name=name, make=make, **kept)


def _with_late(name: str, which: str, late_s: float) -> Row:
    """Picture or sound begins later than the other, by an empty edit."""

    def make(media: MakeMedia) -> Path:
        return with_late(media, f"{name}.mp4", make_card(media, "card.mp4"), which, late_s)

    return Row(name=name, make=make)


def video_codecs() -> Iterator[Row]:
    yield _row("h264-8bit-420")
    yield _row("h264-10bit-420", yuv=as_yuv("yuv420p10le"))
    yield _row("h264-8bit-422", yuv=as_yuv("yuv422p"))
    yield _row("h264-10bit-422", yuv=as_yuv("yuv422p10le"))
    yield _row("h264-444", yuv=as_yuv("yuv444p"))
    yield _row("hevc-8bit", codec=X265)
    yield _row("hevc-10bit", codec=X265, yuv=as_yuv("yuv420p10le"))
    prores = ("-c:v", "prores_ks", "-profile:v", "1")
    yield _row("prores-422", codec=prores, yuv=as_yuv("yuv422p10le"), extension="mov")
    mjpeg = ("-c:v", "mjpeg", "-q:v", "2")
    jfif = as_yuv("yuvj422p", matrix="smpte170m", full_range=True)
    yield _row("mjpeg", codec=mjpeg, yuv=jfif, extension="mov")
    mpeg4 = ("-c:v", "mpeg4", "-q:v", "2", "-bf", "2")
    yield _row("mpeg4-part2", codec=mpeg4, yuv=as_yuv(matrix="smpte170m"))
    yield _row("av1", codec=("-c:v", "libsvtav1", "-preset", "12", "-svtav1-params", "lp=2"))
    vp9 = ("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "1M")
    yield _row("vp9", codec=vp9)


def audio_codecs() -> Iterator[Row]:
    small = card(size=SMALL)  # one rung: it is about the sound
    for codec in ("ac3", "alac", "libopus", "libmp3lame"):
        yield _row(f"audio-{codec.removeprefix('lib')}", "-c:a", codec, picture=small)
    yield _row("audio-pcm", "-c:a", "pcm_s16le", picture=small, extension="mov")
    for rate_hz in (8_000, 22_050, 44_100, 96_000):
        yield _row(f"audio-{rate_hz}-hz", picture=small, sound=beeps(rate_hz=rate_hz))
    high = beeps(rate_hz=192_000)
    yield _row("audio-192000-hz", "-c:a", "pcm_s24le", picture=small, sound=high, extension="mov")
    yield _row("audio-stereo", picture=small, sound=beeps(layout="stereo"))
    yield _row("audio-5.1", picture=small, sound=beeps(layout="5.1"))
    yield _row("audio-none", sound=None, in_sync=False)
    yield _row("audio-longer", picture=small, sound=beeps(duration_s=10))
    yield _row("audio-shorter", picture=small, sound=beeps(duration_s=3), in_sync=False)
    yield _with_late("audio-late", "0:a", 1.2)


def _off_the_grid() -> Row:
    """Ten frames a second that begin half a frame after the sound."""

    def make(media: MakeMedia) -> Path:
        slow = make_card(media, "slow.mp4", picture=card(rate="10"))
        return with_late(media, "off-the-grid.mp4", slow, "0:v", 0.05)

    return Row(name="picture-off-the-frame-grid", make=make)


def containers() -> Iterator[Row]:
    fragmented = ("-g", "25", "-movflags", "frag_keyframe+empty_moov+default_base_moof")
    yield _row("fragmented", *fragmented)
    yield _row("moov-first", "-movflags", "+faststart")
    yield _with_late("picture-late", "0:v", 0.8)
    yield _remuxed("both-late", ("-itsoffset", "0.8"))
    yield _off_the_grid()
    late_flashes = card(flashes_s=(2.5, 6.0))
    late_beeps = beeps(at_s=(2.5, 6.0))

    def flashing_later(media: MakeMedia) -> Path:
        return make_card(media, "later.mp4", picture=late_flashes, sound=late_beeps)

    yield _remuxed("start-trimmed", ("-ss", "1.3"), source=flashing_later)
    yield _row("negative-offsets", "-bf", "3", "-movflags", "negative_cts_offsets")
    # A time code and chapters are tracks of their own kinds.
    yield _row("timecode", "-timecode", "01:00:00:00", extension="mov")


def shapes() -> Iterator[Row]:
    yield _remuxed("rotation-90", ("-display_rotation", "90"), corners=(_B, _D, _A, _C))
    yield _remuxed("rotation-180", ("-display_rotation", "180"), corners=(_D, _C, _B, _A))
    yield _remuxed("rotation-270", ("-display_rotation", "270"), corners=(_C, _A, _D, _B))
    yield _remuxed("mirrored-sideways", ("-display_hflip",), corners=(_B, _A, _D, _C))
    yield _remuxed("mirrored-upside-down", ("-display_vflip",), corners=(_C, _D, _A, _B))

    def easily_copied(media: MakeMedia) -> Path:
        return make_card(media, "easily copied.mp4", "-g", "50")

    def with_wide_pixels(media: MakeMedia) -> Path:
        return make_card(media, "wide.mp4", picture=card(size="408x306"), yuv=wide)

    for name, option, corners in (
        ("copyable-but-upside-down", "-display_vflip", (_C, _D, _A, _B)),
        ("copyable-but-mirrored", "-display_hflip", (_B, _A, _D, _C)),
    ):
        yield _remuxed(name, (option,), source=easily_copied, corners=corners)
    yield _row("portrait", picture=card(size="306x544"))
    yield _row("odd-size", picture=card(size="543x305"), yuv=as_yuv("yuv444p"))
    yield _row("square", picture=card(size="306x306"))
    wide = f"{as_yuv()},setsar=4/3"
    yield _row("wide-pixels", picture=card(size="408x306"), yuv=wide)
    yield _row("narrow-pixels", picture=card(size="544x306"), yuv=f"{as_yuv()},setsar=3/4")
    turned = ("-display_rotation", "90")
    corners = (_B, _D, _A, _C)
    yield _remuxed("wide-pixels-rotated", turned, source=with_wide_pixels, corners=corners)
    yield _row("tiny", picture=card(size="64x36"), tolerance=12)


def rates() -> Iterator[Row]:
    slow = {"rate": "1", "duration_s": 10, "flashes_s": (1.0, 8.0), "flash_s": 1.0}
    at_seconds = beeps(duration_s=10, at_s=(1.0, 8.0))
    yield _row("1-fps", picture=card(size=SMALL, **slow), sound=at_seconds)
    for rate in ("10", "24000/1001", "25", "30000/1001", "50", "60000/1001", "60", "120", "240"):
        name = f"{float(eval_rate(rate)):.5g}-fps"
        yield _row(name, picture=card(size=SMALL, rate=rate))


def eval_rate(text: str) -> float:
    above, _, below = text.partition("/")
    return int(above) / int(below or 1)


def colours() -> Iterator[Row]:
    yield _row("full-range", yuv=as_yuv("yuvj420p", full_range=True))
    yield _row("bt601-tagged", yuv=as_yuv(matrix="smpte170m"))
    untagged = "format={0},setparams=colorspace=unknown:range=unknown"
    small = f"scale=out_color_matrix=bt601:out_range=tv,{untagged.format('yuv420p')}"
    yield _row("untagged-sd-is-bt601", yuv=small)
    hd = card(size="1280x720", duration_s=2, flashes_s=(0.5, 1.5))
    large = f"scale=out_color_matrix=bt709:out_range=tv,{untagged.format('yuv422p')}"
    hd_sound = beeps(duration_s=2, at_s=(0.5, 1.5))
    yield _row("untagged-hd-is-bt709", picture=hd, yuv=large, sound=hd_sound)
    yield _row("rgb", codec=("-c:v", "qtrle"), yuv="format=rgb24", extension="mov")


def transparency() -> Iterator[Row]:
    """The lower left quarter is blue, and quite transparent: it must not show."""
    hole = ",format=rgba,drawbox=x=0:y=ih/2:w=iw/2:h=ih/2:c=0x3040c0@0:t=fill:replace=1"
    picture = card(size=SMALL) + hole
    corners = (_A, _B, BLACK, _D)
    for name, codec, yuv in (
        ("alpha-qtrle", ("-c:v", "qtrle"), "format=argb"),
        ("alpha-png", ("-c:v", "png"), "format=rgba"),
        (
            "alpha-prores-4444",
            ("-c:v", "prores_ks", "-profile:v", "4"),
            f"scale=out_color_matrix=bt709:out_range=tv,format=yuva444p10le,{BT709_TAGS}",
        ),
    ):
        yield _row(name, picture=picture, codec=codec, yuv=yuv, extension="mov", corners=corners)


def lengths() -> Iterator[Row]:
    one = card(duration_s=0.04, flashes_s=())
    yield _row("one-frame", picture=one, sound=None, in_sync=False)
    yield _row("one-frame-of-a-tenth", picture=card(duration_s=10, rate="1/10"), in_sync=False)
    short = card(duration_s=1.5, flashes_s=(0.2, 1.0), flash_s=0.1)
    yield _row("under-one-segment", picture=short, sound=beeps(duration_s=1.5, at_s=(0.2, 1.0)))


def all_rows() -> list[Row]:
    kinds = (video_codecs, audio_codecs, containers, shapes)
    others = (rates, colours, transparency, lengths)
    return [row for kind in (*kinds, *others) for row in kind()]


# One or two rows of each kind of source.
FAST = {
    *("h264-10bit-422", "hevc-10bit", "mpeg4-part2", "alpha-png"),
    *("audio-ac3", "audio-22050-hz", "audio-none", "audio-longer", "audio-shorter", "audio-late"),
    *("fragmented", "picture-late", "start-trimmed"),
    *("rotation-90", "copyable-but-mirrored", "odd-size", "wide-pixels-rotated"),
    *("29.97-fps", "120-fps", "full-range", "untagged-sd-is-bt601", "one-frame"),
}


def rows() -> list[Any]:
    """The fast ones by default, all of them with `-m "soak or not soak"`."""
    made = all_rows()
    assert {row.name for row in made} >= FAST
    return [
        pytest.param(row, id=row.name, marks=[] if row.name in FAST else [pytest.mark.soak])
        for row in made
    ]


@pytest.mark.parametrize("row", rows())
async def test_a_source_is_published_as_it_was_meant(
    row: Row, make_media: MakeMedia, publish: Publish
) -> None:
    published = await publish(row.make(make_media))

    check_published(published, corners=row.corners, tolerance=row.tolerance, in_sync=row.in_sync)
