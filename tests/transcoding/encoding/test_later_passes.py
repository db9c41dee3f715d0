"""A video is made in passes: playable early, and complete later with everything aligned."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from media_recipes import COPYABLE, CORNERS, MakeMedia, as_yuv, beeps, card, make_card
from published import FolderSink, Published, Result, make_pass, playlist
from published_checks import check_published

from portal.transcoding.packaging.hls import (
    MediaPlaylist,
    Segment,
    media_playlist_name,
    parse_media_playlist,
)
from portal.transcoding.packaging.master import MASTER_NAME, Kind, master_playlist
from portal.transcoding.planning.ladder import Plan, plan_renditions
from portal.transcoding.probing.probe import probe

LARGE = "1280x720"  # 360p at once, 720p at once when copied, the others later


def names(result: Result) -> list[str]:
    return [each.name for each in result.renditions]


def left(plan: Plan, done: Result) -> list[str]:
    return [rung.name for rung in plan.video if rung.name not in names(done)]


async def in_two_passes(path: Path, folder: Path) -> tuple[Result, Result]:
    """The first as the portal does a long source, the second into a folder beside it."""
    plan = plan_renditions(await probe(str(path)))
    wanted = plan.first_pass(cautious=True)
    first = await make_pass(
        path, wanted=wanted, sink=FolderSink(folder / "1"), work_dir=folder / "work"
    )
    text = (folder / "1" / media_playlist_name(first.renditions[0].name)).read_text()
    second = await make_pass(
        path,
        wanted=left(plan, first),
        reference=parse_media_playlist(text),
        sink=FolderSink(folder / "2"),
        work_dir=folder / "work",
    )
    return first, second


def together(path: Path, folder: Path, first: Result, second: Result) -> Published:
    """Both passes in one folder, to be checked like any other."""
    whole = folder / "whole"
    for attempt in ("1", "2"):
        shutil.copytree(folder / attempt, whole, dirs_exist_ok=True)
    videos = sorted((*first.renditions, *second.renditions), key=lambda each: each.width or 0)
    rest = [each for each in first.output.renditions if each.kind is not Kind.VIDEO]
    output = replace(first.output, renditions=(*videos, *rest))
    master = master_playlist([("", each) for each in output.renditions])
    (whole / MASTER_NAME).write_text(master)
    return Published(path, replace(first, output=output), FolderSink(whole))


VARIABLE = "select='not(mod(n,3))+lt(mod(n,40),15)',"


RATES = {"constant": "10", "29.97": "30000/1001", "variable": "30", "copied": "10"}
OPTIONS = {"variable": ("-fps_mode", "passthrough"), "copied": COPYABLE}
SOAKED = ("29.97", "copied")


def ten_seconds(make_media: MakeMedia, kind: str) -> Path:
    """A source of one of these kinds, flashing near both ends."""
    recipe = {
        "picture": card(size=LARGE, rate=RATES[kind], duration_s=10, flashes_s=(0.6, 9)),
        "sound": beeps(duration_s=10, at_s=(0.6, 9)),
        "yuv": (VARIABLE if kind == "variable" else "") + as_yuv(),
    }
    return make_card(make_media, f"two passes {kind}.mp4", *OPTIONS.get(kind, ()), **recipe)


@pytest.mark.parametrize(
    "kind", [pytest.param(it, marks=pytest.mark.soak) if it in SOAKED else it for it in RATES]
)
@pytest.mark.slow
async def test_a_later_pass_joins_on_to_the_first(
    kind: str, make_media: MakeMedia, tmp_path: Path
) -> None:
    source = ten_seconds(make_media, kind)

    first, second = await in_two_passes(source, tmp_path)

    is_copied = kind == "copied"
    assert names(first) == (["360p", "720p"] if is_copied else ["360p"])
    assert names(second) == (["240p", "480p"] if is_copied else ["240p", "480p", "720p"])
    assert [each.copied for each in first.renditions][-1] == is_copied
    assert not second.audio
    assert not second.output.has_poster
    check_published(together(source, tmp_path, first, second), corners=CORNERS, in_sync=True)


async def test_a_pass_of_one_rendition_alone_makes_just_that(
    make_media: MakeMedia, tmp_path: Path
) -> None:
    source = make_card(make_media, "card.mp4")
    sink = FolderSink(tmp_path / "sink")
    segments = tuple(
        Segment(uri=f"{number}.m4s", duration_s=length_s)
        for number, length_s in enumerate((4.0, 3.0))
    )
    reference = MediaPlaylist(segments=segments, map_uri=None, target_duration_s=5, complete=True)

    alone = await make_pass(
        source, wanted=["240p"], reference=reference, sink=sink, work_dir=tmp_path / "work"
    )

    assert names(alone) == ["240p"]
    assert {path.name for path in sink.folder.iterdir()} == {"240p"}
    assert playlist(sink.folder, "240p").target_duration_s == 5
