"""A source that every player takes is copied as it is; any doubt, and it is encoded."""

import io
from pathlib import Path

import av
import pytest
from media_recipes import (
    COPYABLE,
    CORNERS,
    MakeMedia,
    beeps,
    card,
    make_card,
    with_late,
)
from published import FolderSink, Publish, PublishCard, joined, make_pass, payloads, playlist
from published_checks import check_published

from portal.transcoding.errors import CopyUndeliverable
from portal.transcoding.planning.ladder import Rung, plan_renditions
from portal.transcoding.probing.probe import probe


def copyable(make_media: MakeMedia) -> Path:
    return make_card(make_media, "copyable.mp4", *COPYABLE)


async def top_of_plan(path: Path) -> Rung:
    return plan_renditions(await probe(str(path))).video[-1]


async def test_a_qualified_source_is_copied_bit_for_bit(publish_card: PublishCard) -> None:
    published = await publish_card("copyable.mp4", *COPYABLE)

    assert [each.copied for each in published.result.renditions] == [False, True]
    top = published.result.renditions[-1]
    copied = payloads(io.BytesIO(joined(published.folder, top.name)))
    assert copied == payloads(published.path)
    [audio] = published.result.audio
    sound = payloads(io.BytesIO(joined(published.folder, audio.name)), kind="audio")
    assert sound == payloads(published.path, kind="audio")
    video_cuts = playlist(published.folder, top.name).starts_s
    assert playlist(published.folder, audio.name).starts_s == pytest.approx(
        video_cuts, abs=1024 / 44_100
    )
    check_published(published, corners=CORNERS, in_sync=True)


async def test_the_others_are_cut_where_the_copied_one_has_key_frames(
    publish_card: PublishCard,
) -> None:
    # Every 3 s: the first cut after 4 s is at 6 s, where no encoder would make one by itself.
    picture = card(duration_s=14, flashes_s=(0.5, 13))
    sound = beeps(duration_s=14, at_s=(0.5, 13))
    published = await publish_card(
        "every 3 s.mp4", *COPYABLE, "-g", "75", picture=picture, sound=sound
    )

    assert published.result.renditions[-1].copied
    starts = [playlist(published.folder, name).starts_s for name in published.pictures]
    assert starts[0] == pytest.approx(starts[1], abs=0.001)
    assert all(start_s % 3 == pytest.approx(0, abs=0.001) for start_s in starts[0])
    assert len(starts[0]) >= 3
    check_published(published, corners=CORNERS, in_sync=True)


async def test_a_late_picture_is_copied_and_shown_from_the_start(
    make_media: MakeMedia, publish: Publish
) -> None:
    late = with_late(make_media, "late copy.mp4", copyable(make_media), "0:v", 0.5)

    published = await publish(late)

    assert published.result.renditions[-1].copied
    check_published(published, in_sync=False)
    starts = [playlist(published.folder, name).starts_s for name in published.pictures]
    assert starts[0] == pytest.approx(starts[1], abs=0.001)
    top = published.top
    assert top[0].time_s == pytest.approx(0, abs=0.001)


@pytest.fixture(scope="session")
def half_open(make_media: MakeMedia) -> Path:
    """Open groups of pictures but for those at which a probe samples: first, quarters, last."""
    at_s = "0,11.6,23.6,35.6,47.6"
    params = "open-gop=1:bframes=3:b-adapt=0:scenecut=0:keyint=10:min-keyint=10"
    codec = ("-c:v", "libx264", "-preset", "ultrafast", "-bf", "3")
    forced = ("-force_key_frames", at_s, "-forced-idr", "1", "-x264-params", params)
    picture, sound = card(duration_s=48), beeps(duration_s=48)
    return make_card(
        make_media, "half open.mp4", *forced, codec=codec, picture=picture, sound=sound
    )


async def test_a_stream_that_turns_out_not_to_be_copyable_is_told(
    half_open: Path, tmp_path: Path
) -> None:
    top = await top_of_plan(half_open)
    assert top.copied, "the plan should be taken in"

    with pytest.raises(CopyUndeliverable):
        await make_pass(
            half_open, wanted=[top.name], sink=FolderSink(tmp_path / "sink"), work_dir=tmp_path
        )


async def test_a_copy_whose_beginning_does_not_decode_is_told(
    make_media: MakeMedia, tmp_path: Path
) -> None:
    whole = copyable(make_media)
    with av.open(str(whole)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    victim = next(packet for packet in packets[5:] if packet.size > 400)
    content = bytearray(whole.read_bytes())
    inside = slice(victim.pos + 100, victim.pos + 300)
    content[inside] = bytes(byte ^ 0x55 for byte in content[inside])
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(content)
    top = await top_of_plan(damaged)

    with pytest.raises(CopyUndeliverable, match="undecodable"):
        await make_pass(
            damaged, wanted=[top.name], sink=FolderSink(tmp_path / "sink"), work_dir=tmp_path
        )
