"""Bulk actions: each video follows its own rules, and a toast shows the results."""

import html
import re
from uuid import UUID, uuid4

import pytest
from library_pages import add_video
from page_rows import READY
from page_texts import page
from quart import Quart
from signed_in import Sender, make_account, send_fields, signed_in, text_of

from portal.accounts import groups
from portal.database.account_models import Account, Role
from portal.database.event_models import Event
from portal.database.models import Video, Visibility
from portal.videos.visibility import MAX_SHARES, recorded_access

pytestmark = pytest.mark.shared_app


async def eds(title: str, number: int = 0, **values: object) -> Video:
    """A video of the editor's."""
    return await add_video(title, number, owner_id=(await Account.get(role="editor")).id, **values)


async def act(sender: Sender, action: str, *videos: Video, **fields: str) -> str:
    """Return the toast after an action on these videos."""
    return toast_message(await page(sender, await send(sender, action, *videos, **fields)))


async def send(sender: Sender, action: str, *videos: Video, **fields: str) -> str:
    """Return the address to which an action redirects."""
    form = {"action": action, "id": [str(video.id) for video in videos], **fields}
    response = await send_fields(sender, "/videos/selected", **form)
    assert response.status_code == 303
    return response.headers["Location"]


def toast_message(text: str) -> str:
    match = re.search(r'class="toast__message"[^>]*>([^<]*)<', text)
    return html.unescape(match[1]) if match else ""


def undo_ids(text: str) -> set[UUID]:
    """The videos that a page offers to bring back."""
    toast = text[text.index('class="toast"') : text.index("data-bulk-error")]
    return {UUID(video_id) for video_id in re.findall(r'name="id" value="([^"]+)"', toast)}


async def test_tags_are_added_and_removed(anyone: Sender) -> None:
    first = await add_video("One", 1, tags="Sea, sun")
    second = await add_video("Two", 2)
    assert (
        await act(anyone, "add-tags", first, second, tags=" sea , Rock ")
        == "Tags added to 2 videos."
    )
    assert [(await Video.get(id=video.id)).tags for video in (first, second)] == [
        "Sea, sun, Rock",
        "sea, Rock",
    ]
    assert await act(anyone, "remove-tags", first, tags="SEA,rock") == "Tags removed from 1 video."
    assert (await Video.get(id=first.id)).tags == "sun"
    assert await Event.filter(action="video.edited").count() == 3


async def test_category_and_visibility_are_set(editor: Sender) -> None:
    first = await eds("One", 1, category_ids=[1, 2])
    second = await eds("Two", 2, signed_in_only=True)
    assert (
        await act(editor, "category", first, second, category="3") == "Category set for 2 videos."
    )
    words = await act(editor, "visibility", first, second, visibility="private")
    assert words == "Visibility set for 2 videos."
    for video in await Video.all():
        assert (video.category_ids, video.visibility) == ([3], Visibility.PRIVATE)


async def test_members_and_public_page_are_choices_like_visibilities(editor: Sender) -> None:
    video = await eds("One")
    for choice, expected in (
        ("members", (Visibility.PRIVATE, True)),
        ("private", (Visibility.PRIVATE, False)),
        ("page", (Visibility.PRIVATE, False)),
        ("members", (Visibility.PRIVATE, True)),
        ("unlisted", (Visibility.UNLISTED, False)),
    ):
        words = await act(editor, "visibility", video, visibility=choice)
        assert words == "Visibility set for 1 video."
        recorded = await Video.get(id=video.id)
        assert (recorded.visibility, recorded.signed_in_only) == expected
        assert recorded.has_public_page is (choice == "page")
        row = await page(editor, "/videos")
        cell = re.search(r'<td class="videos__visibility">([\w ]+)<', row)
        assert cell is not None
        words = "Private with public page" if choice == "page" else choice.capitalize()
        assert cell[1] == words


async def test_videos_are_shared_in_addition_to_present_shares(
    app: Quart, editor: Sender, olga: Account
) -> None:
    vera, walt = [await make_account(name, Role.VIEWER) for name in ("vera", "walt")]
    choir = await groups.create("Choir")
    first = await eds("One", 1, admitted_ids=[vera.id], editor_ids=[vera.id])
    second = await eds("Two", 2, visibility=Visibility.PRIVATE)
    full = await eds("Full", 3, admitted_ids=[uuid4() for _ in range(MAX_SHARES)])
    others_video = await add_video("Olga's", 4, owner_id=olga.id)
    names = "vera@example.org, CHOIR"
    words = await act(editor, "share", first, second, full, others_video, shareWith=names)
    assert words == (
        "2 videos shared. 1 was not changed. You can only change your own videos. "
        "1 would be shared with too many people. Use a group."
    )
    both = {vera.id, choir.id}
    assert await shares_in(first) == {vera.id: "edit", choir.id: "watch"}
    assert await shares_in(second) == dict.fromkeys(both, "watch")
    assert len(await shares_in(full)) == MAX_SHARES
    assert await shares_in(others_video) == {}
    assert await act(editor, "share", second, shareWith="walt@example.org") == "1 video shared."
    assert (await shares_in(second)).keys() == both | {walt.id}
    assert (await (await signed_in(app, walt)).get(f"/videos/{second.id}")).status_code == 200


async def test_unknown_name_to_share_with_changes_nothing(editor: Sender) -> None:
    video = await eds("One")
    await make_account("vera", Role.VIEWER)
    words = await act(editor, "share", video, shareWith="vera@example.org, <gh&st>")
    remedy = "Give the e-mail address of an account, or the name of a group."
    assert words == f"No changes made. “<gh&st>” is nobody here. {remedy}"
    assert await shares_in(video) == {}
    assert "Choose a value first" in await act(editor, "share", video, shareWith=" , ")
    # The address that shows it may be anyone's.
    text = await page(editor, "/videos?did=unknown&name=" + "x" * 200)
    assert f"“{'x' * 100}”" in toast_message(text)


async def test_sharing_and_visibility_need_accounts(anyone: Sender) -> None:
    video = await add_video("One")
    text = await page(anyone, "/videos")
    assert 'value="share"' not in text
    assert 'value="members"' not in text
    assert "nobody here" in await act(anyone, "share", video, shareWith="vera@example.org")


async def shares_in(video: Video) -> dict[UUID, str]:
    """Return the rights in a video by account or group."""
    access = recorded_access(await Video.get(id=video.id))
    return {share.holder_id: share.right.value for share in access.shares}


async def test_videos_of_other_people_are_not_changed(
    app: Quart, editor: Sender, olga: Account
) -> None:
    own = await eds("Ed's")
    anns = await add_video("Ann's", 1, owner_id=olga.id, tags="a")
    hidden = await add_video("Ann's own", 2, owner_id=olga.id, visibility=Visibility.PRIVATE)
    words = await act(editor, "add-tags", own, anns, hidden, tags="b")
    own_only = "1 was not changed. You can only change your own videos."
    assert words == f"Tags added to 1 video. {own_only} 1 is no longer available."
    for action in ("delete", "undo", "visibility", "category"):
        toast = await act(editor, action, anns, visibility="private", category="2")
        assert toast in (own_only, "Too late to undo: 1 video was permanently deleted.")
    unchanged = await Video.get(id=anns.id)
    assert (unchanged.tags, unchanged.visibility, unchanged.deleted_at) == (
        "a",
        Visibility.PUBLIC,
        None,
    )
    # An admin may.
    assert (
        await act(await signed_in(app, olga), "add-tags", own, tags="c") == "Tags added to 1 video."
    )


async def test_incomplete_form_changes_nothing(anyone: Sender) -> None:
    video = await add_video("One", tags="a")
    assert "Select videos first" in await act(anyone, "add-tags", tags="b")
    for action, fields in (
        ("add-tags", {"tags": " , "}),
        ("category", {"category": "999"}),
        ("visibility", {"visibility": "secret"}),
    ):
        assert "Choose a value first" in await act(anyone, action, video, **fields)
    assert await act(anyone, "ask", Video(id=uuid4())) == "1 is no longer available."


async def test_deletion_is_confirmed_once_and_can_be_undone(anyone: Sender) -> None:
    first = await add_video("One <1>", 1, **READY)
    second = await add_video("Two", 2, **READY)
    ids = [str(first.id), str(second.id)]
    question = await text_of(await send_fields(anyone, "/videos/selected", action="ask", id=ids))
    assert "Delete 2 videos?" in question
    assert "One &lt;1&gt;" in question
    text = await page(anyone, await send(anyone, "delete", first, second))
    assert toast_message(text) == "2 videos deleted."
    assert undo_ids(text) == {first.id, second.id}
    for path in ("/", "/videos"):
        assert "Two" not in await page(anyone, path)
    assert await act(anyone, "undo", first, second) == "2 videos restored."
    # Pressed twice, or by second.
    assert await act(anyone, "undo", first) in (
        "1 video restored.",
        "Too late to undo: 1 video was permanently deleted.",
    )
    assert "Two" in await page(anyone, "/")
    actions = await Event.all().order_by("id").values_list("action", flat=True)
    assert list(actions) == ["video.deleted"] * 2 + ["video.restored"] * 2


async def test_question_tells_that_a_file_stays_for_another_video(anyone: Sender) -> None:
    first = await add_video("One", 1, **READY)
    second = await add_video("Two", 2, **READY)
    await add_video("Copy", 3, storage_key=second.storage_key, **READY)
    stays = "Its original file stays, because another video uses it."
    for video, is_kept in ((first, False), (second, True)):
        for path in (f"/videos/{video.id}/delete", f"/videos/{video.id}/edit"):
            text = await page(anyone, path)
            assert (stays in text) is is_kept
            assert ("original file are deleted" in text) is not is_kept
