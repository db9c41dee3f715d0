"""Renditions of a later pass have the same segments as those of the first."""

from dataclasses import replace
from pathlib import Path

import pytest
from media_recipes import (
    COPYABLE,
    CORNERS,
    EXACT_TIMES,
    MakeMedia,
    as_yuv,
    beeps,
    card,
    jittering,
    make_card,
    with_late,
)
from published import MASTER_TYPE, FolderSink, Published, make_pass, playlist
from published_checks import check_published

from portal.transcoding.packaging.master import MASTER_NAME, master_playlist

VARYING = ("-fps_mode", "passthrough")
VARIABLE = f"select='not(mod(n,3))+lt(mod(n,40),15)',{as_yuv()}"
# Key frames every 3 s, where segments of an encoded film would not begin.
EVERY_3_S = (*COPYABLE, "-g", "75", *EXACT_TIMES)


@pytest.mark.parametrize(
    ("first", "rate", "options", "yuv", "late_s", "starts_s"),
    [
        pytest.param("240p", "30", VARYING, VARIABLE, 0, (0, 4, 8, 12), id="variable"),
        pytest.param("306p", "25", EVERY_3_S, jittering(as_yuv(), 4000), 0, (0, 3, 9), id="copied"),
        pytest.param("306p", "25", COPYABLE, as_yuv(), 0.5, (0, 4.5, 8.5, 12.5), id="late copy"),
    ],
)
async def test_a_later_pass_joins_on_to_the_first(
    first: str,
    rate: str,
    options: tuple[str, ...],
    yuv: str,
    late_s: float,
    starts_s: tuple[float, ...],
    make_media: MakeMedia,
    tmp_path: Path,
) -> None:
    picture = card(rate=rate, duration_s=14, flashes_s=(0.6, 13))
    sound = beeps(duration_s=14, at_s=(0.6, 13))
    source = make_card(make_media, "passes.mp4", *options, picture=picture, sound=sound, yuv=yuv)
    if late_s:
        source = with_late(make_media, "late.mp4", source, "0:v", late_s)
    sink = FolderSink(tmp_path / "sink")
    work_dir = tmp_path / "work"
    early = await make_pass(source, wanted=[first], sink=sink, work_dir=work_dir)
    reference = playlist(sink.folder, first)
    assert reference.starts_s == pytest.approx(starts_s, abs=0.1)
    early_count = len(sink.names)
    [other] = [rung.name for rung in early.plan.video if rung.name != first]

    later = await make_pass(
        source, wanted=[other], reference=reference, sink=sink, work_dir=work_dir
    )

    assert early.renditions[0].copied == (first == "306p")
    assert all(name.startswith(f"{other}/") for name in sink.names[early_count:])
    assert not later.has_poster
    assert playlist(sink.folder, other).starts_s == pytest.approx(reference.starts_s, abs=1e-4)
    videos = sorted((*early.renditions, *later.renditions), key=lambda each: each.width or 0)
    renditions = (*videos, *early.audio)
    master = master_playlist([("", each) for each in renditions])
    await sink.put(MASTER_NAME, master.encode(), MASTER_TYPE)
    whole = replace(early, output=replace(early.output, renditions=renditions))
    check_published(Published(source, whole, sink), corners=CORNERS, in_sync=not late_s)
