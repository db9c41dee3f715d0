"""HDR sources become BT.709 that looks like the scene: neither washed out nor dark."""

import pytest
from media_recipes import CORNERS, TO_BT709, as_hdr, card
from published import PublishCard
from published_checks import check_published

from portal.transcoding.errors import Note


@pytest.mark.parametrize(
    ("transfer", "tagged"), [("smpte2084", True), ("arib-std-b67", True), ("arib-std-b67", False)]
)
async def test_hdr_is_shown_as_the_scene_it_was_graded_from(
    transfer: str, tagged: bool, publish_card: PublishCard
) -> None:
    tags = f"colorprim=bt2020:colormatrix=bt2020nc:transfer={transfer if tagged else 'undef'}"
    codec = ("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1")
    params = ("-x265-params", f"log-level=error:{tags}")
    published = await publish_card(
        f"{transfer}-{tagged}.mp4", *params, codec=codec, yuv=as_hdr(transfer, tagged=tagged)
    )
    assert Note.HDR_CONVERTED in published.result.notes
    check_published(published, corners=CORNERS, tolerance=24, in_sync=True)


async def test_standard_colours_are_not_taken_for_hdr(publish_card: PublishCard) -> None:
    picture = card(size="320x180", duration_s=1, flashes_s=())
    recipe = {"picture": picture, "sound": None, "yuv": f"{TO_BT709},format=yuv420p10le"}
    published = await publish_card("ten bits.mp4", **recipe)
    assert Note.HDR_CONVERTED not in published.result.notes
