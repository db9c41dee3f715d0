"""HDR sources become BT.709 that looks like the scene: neither washed out nor dark."""

import re
import subprocess
from pathlib import Path

import av
import pytest
from media_recipes import MakeMedia
from published import Publish, joined
from published_checks import check_published

from portal.transcoding.encoding.ffmpeg import ffmpeg_path
from portal.transcoding.planning.notes import Note

SCENE = (
    "testsrc2=s=640x360:r=25:d=1,format=yuv420p,"
    "setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv"
)
BT709 = 1


def as_hdr(make_media: MakeMedia, transfer: str, *, tagged: bool = True) -> Path:
    """The scene graded for HDR with its white at 203 nits, in ten bits of BT.2020."""
    graded = (
        "zscale=t=linear:npl=203,format=gbrpf32le,zscale=p=bt2020,"
        f"zscale=t={transfer}:m=bt2020nc:r=tv:npl=203,format=yuv420p10le"
    )
    tags = f"colorprim=bt2020:colormatrix=bt2020nc:transfer={transfer if tagged else 'undef'}"
    if not tagged:
        graded += ",setparams=color_trc=unknown"
    return make_media(
        f"{transfer}-{tagged}.mp4",
        *("-f", "lavfi", "-i", SCENE, "-vf", graded, "-c:v", "libx265", "-preset", "ultrafast"),
        *("-x265-params", f"log-level=error:{tags}", "-tag:v", "hvc1"),
    )


def look(path_or_scene: str, *source_format: str) -> tuple[float, float]:
    """Mean luma and mean saturation of the first frame, on the scales of 8-bit video."""
    statistics = subprocess.run(
        [
            *(ffmpeg_path(), "-v", "error", *source_format, "-i", path_or_scene),
            *("-vf", "format=yuv420p,signalstats,metadata=print:file=-"),
            *("-frames:v", "1", "-f", "null", "-"),
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    luma, saturation = (
        float(re.findall(rf"signalstats\.{name}=([\d.]+)", statistics)[0])
        for name in ("YAVG", "SATAVG")
    )
    return luma, saturation


@pytest.mark.parametrize(
    ("transfer", "tagged"),
    [("smpte2084", True), ("arib-std-b67", True), ("arib-std-b67", False)],
)
async def test_hdr_is_shown_as_the_scene_it_was_graded_from(
    transfer: str, tagged: bool, make_media: MakeMedia, publish: Publish, tmp_path: Path
) -> None:
    published = await publish(as_hdr(make_media, transfer, tagged=tagged))

    played = tmp_path / "played.mp4"
    played.write_bytes(joined(published.folder, "360p", 0))
    with av.open(str(played)) as container:
        frame = next(container.decode(video=0))
    assert (frame.colorspace, frame.color_trc, frame.color_primaries) == (BT709, BT709, BT709)
    luma, saturation = look(str(played))
    scene_luma, scene_saturation = look(SCENE, "-f", "lavfi")
    assert luma == pytest.approx(scene_luma, rel=0.2)
    assert saturation == pytest.approx(scene_saturation, rel=0.25)
    assert Note.HDR_CONVERTED in published.result.notes
    check_published(published)


async def test_standard_colours_are_not_taken_for_hdr(
    make_media: MakeMedia, publish: Publish
) -> None:
    source = make_media("sdr.mp4", "-f", "lavfi", "-i", SCENE, "-pix_fmt", "yuv420p10le")
    assert Note.HDR_CONVERTED not in (await publish(source)).result.notes
