"""Light levels, colours and apertures are those that the file describes."""

import io
import struct
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import av
import pytest
from decoded_media import RGB
from media_recipes import CORNERS, X265, MakeMedia, as_hdr, card, make_card
from mp4_writer import box, insert_in_sample_entry
from published import Published, Studio, probe

from portal.transcoding.encoding.output_validation import notes_for
from portal.transcoding.errors import Note

SHORT = card(size="96x64", rate="10", duration_s=0.5, flashes_s=())
MASTERING = "master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(1000,1)"
# Ten bits of BT.2020 whose values are those of a card in standard colours.
LOG = (
    "scale=out_color_matrix=bt2020:out_range=tv,format=yuv420p10le"
    ",setparams=color_primaries=bt2020:color_trc=unknown:colorspace=bt2020nc"
)


def make_hevc(
    make_media: MakeMedia, name: str, yuv: str, *params: str, matrix: str = "bt2020nc"
) -> Path:
    tags = ("log-level=error", "colorprim=bt2020", f"colormatrix={matrix}", *params)
    encoding = ("-x265-params", ":".join(tags))
    return make_card(make_media, name, *encoding, picture=SHORT, sound=None, codec=X265, yuv=yuv)


def check_corners(
    published: Published, expected: Sequence[RGB] = CORNERS, tolerance: float = 8
) -> None:
    for pictures in published.pictures.values():
        for picture in (pictures[0], pictures[-1]):
            for corner, colour in zip(picture.corners, expected, strict=True):
                assert corner == pytest.approx(colour, abs=tolerance)


@pytest.mark.parametrize(
    ("name", "matrix", "params"),
    [
        ("ictcp.mp4", "ictcp", ("transfer=smpte2084",)),
        ("constant.mp4", "bt2020c", ("transfer=smpte2084",)),
        ("mastered.mp4", "bt2020nc", ("transfer=undef", MASTERING)),
    ],
)
async def test_hdr_is_converted_however_the_file_declares_it(
    name: str, matrix: str, params: Sequence[str], studio: Studio
) -> None:
    unnamed = "" if "transfer=smpte2084" in params else ",setparams=color_trc=unknown"
    # No scaler makes pictures of constant luminance, and cameras mean the other kind.
    pixels = "bt2020nc" if matrix == "bt2020c" else matrix
    yuv = as_hdr("smpte2084", pixels) + unnamed
    published = await studio.publish(make_hevc(studio.make, name, yuv, *params, matrix=matrix))

    check_corners(published, tolerance=24)
    assert Note.HDR_CONVERTED in published.result.output.notes


async def test_log_footage_is_left_as_it_is(studio: Studio) -> None:
    published = await studio.publish(make_hevc(studio.make, "log.mp4", LOG, "transfer=undef"))

    check_corners(published)
    assert published.result.output.notes == (Note.NO_AUDIO, Note.LOG_UNCONVERTED)


@pytest.mark.parametrize(
    ("profile", "compatibility", "matrix", "notes"),
    [
        (5, 0, "bt2020nc", (Note.NO_AUDIO, Note.DOLBY_VISION_UNCONVERTED)),
        (8, 2, "bt2020nc", (Note.NO_AUDIO, Note.LOG_UNCONVERTED)),
        (8, 4, "bt2020nc", (Note.HDR_CONVERTED, Note.NO_AUDIO)),
    ],
)
async def test_dolby_vision_goes_by_its_base_layer(
    profile: int, compatibility: int, matrix: str, notes: Sequence[Note], make_media: MakeMedia
) -> None:
    plain = make_hevc(make_media, f"{matrix}.mov", LOG, "transfer=undef", matrix=matrix)
    record = struct.pack(">BBHB", 1, 0, profile << 9 | 1 << 3 | 0b101, compatibility << 4)
    kind = b"dvcC" if profile < 8 else b"dvvC"
    source = insert_in_sample_entry(plain, b"hvc1", box(kind, record, bytes(19)))
    assert notes_for(await probe(source), damaged_share=0) == notes


@pytest.mark.parametrize(
    ("filters", "aperture", "turn", "size"),
    [
        # The aperture's centre is 15.5 pixels right of the frame's and 8 above it.
        ("pad=128:80:32:0:white", (97, 1, 64, 1, 31, 2, -8, 1), "0", (96, 64)),
        ("pad=128:64:16:0:white,setsar=4/3", (96, 1, 64, 1, 0, 1, 0, 1), "0", (128, 64)),
        ("pad=128:64:0:0:white", (96, 1, 64, 1, -16, 1, 0, 1), "90", (64, 96)),
    ],
)
async def test_every_picture_is_cut_to_the_aperture_before_it_is_turned(
    filters: str, aperture: Sequence[int], turn: str, size: tuple[int, int], studio: Studio
) -> None:
    picture = f"{card(size='96x64', rate='10', duration_s=1, flashes_s=())},{filters}"
    lying = make_card(
        studio.make, "lying.mp4", "-g", "5", "-level:v", "4", picture=picture, sound=None
    )
    turned = studio.make("turned.mp4", "-display_rotation", turn, "-i", str(lying), "-c", "copy")
    clap = box(b"clap", struct.pack(">8i", *aperture))

    published = await studio.publish(insert_in_sample_entry(turned, b"avc1", clap))

    upper_left, upper_right, lower_left, lower_right = CORNERS
    upright = (upper_right, lower_right, upper_left, lower_left)
    check_corners(published, CORNERS if turn == "0" else upright)
    pictures = chain.from_iterable(published.pictures.values())
    assert {picture.size for picture in pictures} == {size}
    poster = (published.folder / "poster.jpg").read_bytes()
    assert av.open(io.BytesIO(poster)).streams.video[0].width in (size[0], size[0] + 1)
