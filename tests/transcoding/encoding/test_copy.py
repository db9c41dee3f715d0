"""A source that all players decode is copied, and other renditions have the same segments."""

from collections.abc import Callable
from pathlib import Path

import pytest
from decoded_media import packets
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
from published import Publish, joined, playlist
from published_checks import check_published


def jittering_card(make_media: MakeMedia) -> Path:
    """Make a card with key frames every 3 s, where segments would not begin otherwise."""
    picture = card(duration_s=14, flashes_s=(0.5, 13))
    sound = beeps(duration_s=14, at_s=(0.5, 13))
    options = (*COPYABLE, "-g", "75", *EXACT_TIMES)
    yuv = jittering(as_yuv(), 4000)
    return make_card(make_media, "every 3 s.mp4", *options, picture=picture, sound=sound, yuv=yuv)


def late_picture(make_media: MakeMedia) -> Path:
    copyable = make_card(make_media, "copyable.mp4", *COPYABLE)
    return with_late(make_media, "late copy.mp4", copyable, "0:v", 0.5)


@pytest.mark.parametrize(
    ("make", "cuts_s", "in_sync"),
    [(jittering_card, (0, 3, 9), True), (late_picture, (0, 4.5), False)],
)
async def test_sound_is_copied_too_and_the_other_renditions_are_cut_where_the_copy_is(
    make: Callable[[MakeMedia], Path],
    cuts_s: tuple[float, ...],
    in_sync: bool,
    make_media: MakeMedia,
    publish: Publish,
) -> None:
    published = await publish(make(make_media))

    assert [each.copied for each in published.result.renditions] == [False, True]
    copied = packets(joined(published.folder, "audio"), "audio")
    own = packets(published.path, "audio")
    assert [packet.data for packet in copied] == [packet.data for packet in own]
    low, top = published.pictures
    starts_s = playlist(published.folder, top).starts_s
    assert starts_s == pytest.approx(cuts_s, abs=0.005)
    assert playlist(published.folder, low).starts_s == pytest.approx(starts_s, abs=0.0001)
    times_s = [[each.time_s for each in published.pictures[name]] for name in (low, top)]
    assert times_s[0] == pytest.approx(times_s[1], abs=0.0001)
    check_published(published, corners=CORNERS, in_sync=in_sync)
