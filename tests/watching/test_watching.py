"""Watch positions of signed-in people: saving, resuming, and "Continue watching"."""

import re

import pytest
from api_client import UNKNOWN_VIDEO_ID
from library_pages import add_video
from page_rows import NOW, READY, change_video, cut_video
from playable_videos import ready_video
from quart import Quart
from signed_in import Sender, make_account, send_fields, signed_in, text_of

from portal.accounts import people
from portal.accounts.permissions import EVERYONES
from portal.database.account_models import Account, Role
from portal.database.connection import fetch_rows
from portal.database.models import Publication, Video, Visibility
from portal.features.deletion.service import delete_undoably
from portal.features.watching import positions as watching
from portal.features.watching.positions import is_resumable

pytestmark = pytest.mark.shared_app


@pytest.fixture
async def vera(app: Quart, olga: Account) -> Account:
    """Account of a viewer."""
    return await make_account("vera", Role.VIEWER)


@pytest.fixture
async def sender(app: Quart, vera: Account) -> Sender:
    """Browser of the viewer."""
    return await signed_in(app, vera)


async def save(sender: Sender, video: Video, position: object) -> int:
    """Send a position as the player does. Return the status."""
    response = await send_fields(sender, f"/videos/{video.id}/position", position=str(position))
    return response.status_code


async def positions() -> dict[object, int]:
    rows = await fetch_rows("SELECT video_id, position_s FROM watch_positions")
    return {row["video_id"]: row["position_s"] for row in rows}


async def continued(sender: Sender, path: str = "/") -> list[str]:
    """Return the names of the links in "Continue watching"."""
    page = await text_of(await sender.get(path))
    row = re.search(r'<section class="begun".*?</section>', page, re.DOTALL)
    return re.findall(r'aria-label="([^"]+ left)"', row[0]) if row else []


async def attributes(sender: Sender, video: Video) -> dict[str, str]:
    """Return the attributes of the player for positions."""
    text = await text_of(await sender.get(f"/videos/{video.id}"))
    return dict(re.findall(r'(data-position[a-z-]*)="([^"]*)"', text))


@pytest.mark.parametrize(
    ("position_s", "duration_s", "expected"),
    [
        (4, 100.0, False),
        (5, 100.0, True),
        (94, 100.0, True),
        (95, 100.0, False),
        (3579, 3600.0, True),
        (3580, 3600.0, False),
        (5, None, True),
    ],
)
def test_beginning_and_ending_are_not_resumed(
    position_s: int, duration_s: float | None, expected: bool
) -> None:
    assert is_resumable(position_s, duration_s) is expected


async def test_positions_move_with_cuts(sender: Sender) -> None:
    video = await ready_video()
    await change_video(video.id, duration_s=100.0)
    await save(sender, video, 60)
    await cut_video(video, [[10.0, 20.0], [50.0, 80.0]])
    assert (await attributes(sender, video))["data-position"] == "20"
    await save(sender, video, 30)
    assert await positions() == {video.id: 70}
    # The position is in a part that is removed.
    await cut_video(video, [[0.0, 60.0]])
    assert (await attributes(sender, video))["data-position"] == "0"
    assert await continued(sender) == []
    await cut_video(video, None)
    assert (await attributes(sender, video))["data-position"] == "70"


async def test_player_gets_the_last_position_of_its_account(
    app: Quart, olga: Account, sender: Sender
) -> None:
    video = await ready_video(olga)
    address = {"data-position-url": f"/videos/{video.id}/position"}
    assert await attributes(sender, video) == address
    for position in (700, 600):
        assert await save(sender, video, position) == 204
    saved = await attributes(sender, video)
    assert 0 <= float(saved.pop("data-position-age")) < 60
    assert saved == {**address, "data-position": "600"}
    assert await attributes(await signed_in(app, olga), video) == address
    assert await attributes(Sender(app), video) == {}


async def test_finished_video_leaves_the_row_and_starts_from_the_beginning(
    olga: Account, sender: Sender
) -> None:
    begun, finished, never_begun = [await ready_video(olga) for _ in range(3)]
    for video in (begun, finished):
        await save(sender, video, 60)
    for video in (finished, never_begun):
        await save(sender, video, 3720)
    assert await continued(sender) == [f"{begun.title}, 1:01:05 left"]
    assert (await attributes(sender, finished))["data-position"] == "0"
    assert await positions() == {begun.id: 60, finished.id: 0}


async def test_removed_video_leaves_the_row_of_its_viewer_alone(
    owner: Sender, olga: Account, sender: Sender
) -> None:
    video = await ready_video(olga)
    for each in (sender, owner):
        await save(each, video, 60)
    response = await sender.post(f"/videos/{video.id}/position/remove")
    assert (response.status_code, response.headers["Location"]) == (303, "/")
    assert len(await continued(sender)) == 0
    assert len(await continued(owner)) == 1


async def test_row_has_the_last_watched_videos_that_the_viewer_may_see(
    olga: Account, sender: Sender
) -> None:
    """On the library's first page without a search."""
    videos = [await add_video(f"Film {number}", **READY) for number in range(14)]
    for video in videos:
        await save(sender, video, 60)
    await change_video(videos[-1].id, visibility=Visibility.PRIVATE)
    await change_video(videos[-2].id, visibility=Visibility.UNLISTED)
    await change_video(videos[-3].id, status="processing", published_attempt=None)
    await delete_undoably(videos[-4].id)
    await save(sender, videos[2], 70)
    names = [name.partition(",")[0] for name in await continued(sender)]
    assert names == [f"Film {number}" for number in (2, 12, 9, 8, 7, 6, 5, 4)]
    for path in ("/?q=film", "/?category=1"):
        assert await continued(sender, path) == []


async def test_only_the_last_watched_videos_are_kept(
    olga: Account, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MAX_POSITIONS", 2)
    videos = [await ready_video(olga) for _ in range(3)]
    for video in (*videos[:2], videos[0], videos[2]):
        await save(sender, video, 60)
    assert await positions() == {videos[0].id: 60, videos[2].id: 60}


async def test_positions_are_removed_with_their_video_and_their_account(
    owner: Sender, olga: Account, vera: Account, sender: Sender
) -> None:
    first, second = [await ready_video(olga) for _ in range(2)]
    for each, video in ((sender, first), (owner, first), (sender, second), (owner, second)):
        await save(each, video, 60)
    await Publication.filter(id=first.id).delete()
    assert await positions() == {second.id: 60}
    await people.remove(vera.id, by=EVERYONES)
    rows = await fetch_rows("SELECT account_id, video_id FROM watch_positions")
    assert rows == [{"account_id": olga.id, "video_id": second.id}]


async def test_cleared_history_is_deleted(olga: Account, sender: Sender) -> None:
    await save(sender, await ready_video(olga), 60)
    response = await sender.post("/account/watch-history/clear")
    assert "Watch history cleared" in await text_of(await sender.get(response.headers["Location"]))
    assert await positions() == {}


async def test_position_needs_a_visible_video_and_whole_seconds(
    olga: Account, sender: Sender
) -> None:
    """web/test_access tests that only signed-in people may send one."""
    public = await ready_video(olga)
    private = await ready_video(olga, visibility=Visibility.PRIVATE)
    deleted = await ready_video(olga, deleted_at=NOW)
    for hidden in (private, deleted, Video(id=UNKNOWN_VIDEO_ID)):
        assert await save(sender, hidden, 60) == 404
    for invalid in ("", "soon", "-1", "9.5", "1234567"):
        assert await save(sender, public, invalid) == 422, invalid
    assert await positions() == {}
