"""Sharing a video with accounts and groups, to watch or to edit."""

import asyncio
import re
from typing import Any
from uuid import UUID, uuid4

import pytest
from api_client import answered, counts, faults, metadata, problem, uploaded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_texts import page, send, words_of
from playable_videos import Cast, ready_video
from psycopg.types.json import Jsonb
from quart import Quart
from signed_in import Sender, make_account, signed_in

from portal.accounts import groups
from portal.accounts.permissions import (
    ANYONE,
    Principal,
    Right,
    audience_in,
    listed_for,
    shared_with,
    visible_to,
    with_public_pages,
)
from portal.database.account_models import Account, Role
from portal.database.connection import run_query, sql_with
from portal.database.event_models import Event
from portal.database.models import Video, Visibility
from portal.events.records import AUDIENCE_COLUMNS
from portal.http.composition import WebContext
from portal.videos.visibility import (
    MAX_SHARES,
    VideoAccess,
    merge_access,
    mergeable,
    recorded_access,
    shares_of,
)

pytestmark = pytest.mark.shared_app
PRIVATE = {"visibility": "private", "signedInOnly": False, "embedOrigins": []}
IDS = [uuid4() for _ in range(4)]
COLUMNS = AUDIENCE_COLUMNS | {"unlock_id": "uuid", "has_public_page": "boolean"}
AUDIENCES = f"""
SELECT number FROM jsonb_to_recordset({{rows}})
  AS audience (number int, {", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())})
WHERE {{condition}}
"""
some_ids = st.lists(st.sampled_from(IDS), unique=True, max_size=2)
audiences = st.fixed_dictionaries(
    {
        "visibility": st.sampled_from(Visibility),
        "signed_in_only": st.booleans(),
        "owner_id": st.none() | st.sampled_from(IDS),
        "admitted_ids": some_ids,
        "editor_ids": some_ids,
        "approval": st.none() | st.sampled_from(["waiting", "refused"]),
        "unlock_id": st.none() | st.sampled_from(IDS),
        "has_public_page": st.booleans(),
    }
)
readers = st.just(ANYONE) | st.builds(
    Principal,
    account_id=st.sampled_from(IDS),
    role=st.sampled_from(Role),
    group_ids=st.frozensets(st.sampled_from(IDS), max_size=2),
    unlocked_ids=st.frozensets(st.sampled_from(IDS), max_size=2),
)


async def put_access(sender: Sender, video: Video, **members: Any) -> Any:
    address = f"/api/videos/{video.id}/access"
    return await sender.ask("PUT", address, json=PRIVATE | members, headers={"If-Match": "*"})


async def share(sender: Sender, video: Video, name: str, right: str = "watch") -> None:
    await answered(await put_access(sender, video, shares=[{"name": name, "right": right}]))


def form_of(video: Video, *shares: str, **more: str) -> dict[str, Any]:
    """The form as it was made from what is recorded, with these fields `share`."""
    access = recorded_access(video)
    base = [f"{share.holder_id}:{share.right}" for share in access.shares]
    visibility = {"base.visibility": access.visibility, "visibility": access.visibility}
    return {**visibility, "base.share": base, "share": shares, **more}


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(audiences, min_size=1, max_size=12), reader=readers)
async def test_sql_and_python_agree_on_the_audience(
    app: Quart, rows: list[dict[str, Any]], reader: Principal
) -> None:
    numbered = [{"number": number, **row} for number, row in enumerate(rows)]
    stored = Jsonb([{name: _json(value) for name, value in row.items()} for row in numbered])

    async def chosen(condition: Any) -> set[int]:
        matches = await run_query(sql_with(AUDIENCES, rows=stored, condition=condition))
        return {row["number"] for row in matches}

    def expected(rule: Any) -> set[int]:
        return {row["number"] for row in numbered if rule(audience_in(row))}

    assert await chosen(listed_for(reader)) == expected(reader.may_list)
    pages = await chosen(with_public_pages(visible_to(reader)))
    assert pages == expected(reader.may_see_page)
    shared = await chosen(shared_with(reader, Right.WATCH))
    assert shared == expected(lambda audience: reader.ids & audience.admitted_ids)
    assert shared <= expected(lambda audience: audience.is_pending or reader.may_see(audience))
    assert await chosen(visible_to(reader)) == expected(reader.may_see)


def _json(value: Any) -> Any:
    if isinstance(value, list):
        return [str(holder_id) for holder_id in value]
    return str(value) if isinstance(value, UUID) else value


async def test_video_is_shared_by_name_and_read_as_it_was_written(
    editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith, visibility="private")
    vera = await make_account("vera", Role.VIEWER)
    choir = await groups.create("The choir")
    names = [{"name": " the CHOIR", "right": "watch"}, {"name": vera.email, "right": "edit"}]
    written = await answered(await put_access(editor, video, shares=names))
    read = await answered(await editor.get(f"/api/videos/{video.id}/access"))
    assert written == {**read, "invitations": []}
    assert read["shares"] == [
        {"id": str(choir.id), "kind": "group", "name": "The choir", "right": "watch"},
        {"id": str(vera.id), "kind": "account", "name": vera.email, "right": "edit"},
    ]
    # The record can be sent back as it was read. A request without shares leaves them unchanged.
    again = await answered(await put_access(editor, video, shares=read["shares"]))
    assert again["shares"] == read["shares"]
    assert (await answered(await put_access(editor, video)))["shares"] == read["shares"]
    await groups.remove(choir.id)
    [share] = (await answered(await put_access(editor, video)))["shares"]
    assert share["id"] == str(vera.id)


async def test_share_with_nobody_is_refused_by_name(editor: Sender, edith: Account) -> None:
    video = await ready_video(edith, visibility="private")
    shares = [
        {"name": edith.email, "right": "watch"},
        {"name": "ghost@example.org", "right": "watch"},
        {"id": str(uuid4()), "right": "watch"},
    ]
    body = await problem(await put_access(editor, video, shares=shares), 422, "validation_failed")
    assert [fault["pointer"] for fault in body["errors"]] == ["/shares/1/name", "/shares/2/id"]
    assert "“ghost@example.org” is nobody here" in body["errors"][0]["message"]
    assert recorded_access(await Video.get(id=video.id)).shares == ()


async def test_right_to_edit_is_limited_by_the_role_and_not_to_delete(
    app: Quart, editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith, visibility="private")
    eve, vera = await make_account("eve", Role.EDITOR), await make_account("vera", Role.VIEWER)
    staff = await groups.create("Staff")
    await groups.replace_members(staff.id, [eve.email, vera.email], versions=None)
    address = f"/api/videos/{video.id}"
    for right, status in (("watch", 403), ("edit", 200)):
        await share(editor, video, "Staff", right)
        for account, expected in ((eve, status), (vera, 403)):
            sender = await signed_in(app, account)
            assert (await sender.get(address)).status_code == 200
            changed = await sender.ask(
                "PATCH", address, json={"title": right}, headers={"If-Match": "*"}
            )
            assert changed.status_code == expected, (account.email, right)
            deletion = await sender.ask("DELETE", address, headers={"If-Match": "*"})
            assert deletion.status_code == 403
            answer = await sender.get(f"/videos/{video.id}/edit")
            assert answer.status_code == expected, (account.email, right)
    # Out of the group, out of the video, from the next request on.
    await groups.replace_members(staff.id, [vera.email], versions=None)
    assert (await (await signed_in(app, eve)).get(address)).status_code == 404


async def test_form_adds_changes_and_removes(owner: Sender, edith: Account) -> None:
    video = await ready_video(edith, visibility="private")
    vera = await make_account("vera", Role.VIEWER)
    choir = await groups.create("Choir")
    path = f"/videos/{video.id}/access/panel"
    added = form_of(video, added=f"{vera.email}, choir", addedRight="watch")
    text = await send(owner, path, added, 200)
    assert words_of(text).count("Can watch Can edit Remove") == 2
    video = await Video.get(id=video.id)
    changed = form_of(video, f"{vera.id}:edit", f"{choir.id}:")
    await send(owner, path, changed, 200)
    video = await Video.get(id=video.id)
    assert recorded_access(video).shares == shares_of({vera.id: Right.EDIT})
    wrong = form_of(video, f"{vera.id}:watch", added="choir, ghost", addedRight="edit")
    text = await send(owner, path, wrong, 422)
    assert "“ghost” is nobody here" in words_of(text)
    assert re.search(r'<input[^>]*value="choir, ghost"[^>]*id="added"', text)
    assert re.search(rf'value="{vera.id}:watch"\s+selected', text)


async def test_typing_suggests_accounts_and_groups(app: Quart, editor: Sender) -> None:
    vera = await make_account("vera", Role.VIEWER)
    await groups.create("Veterans")
    for field in ("added", "share", "shareWith"):
        text = await page(editor, f"/directory?{field}=choir,%20VE")
        names = re.findall(r'value="([^"]*)"', text)
        assert names == ["choir, Veterans", "choir, vera@example.org"]
    for query in ("?added=", ""):
        assert "option" not in await page(editor, f"/directory{query}")
    assert (await (await signed_in(app, vera)).get("/directory?added=v")).status_code == 403


async def test_video_is_created_with_its_audience(app: Quart, editor: Sender) -> None:
    vera = await make_account("vera", Role.VIEWER)
    choir = await groups.create("The choir")
    body = metadata(await uploaded(editor))
    query = "visibility=private&signedInOnly=true&share=%20the%20CHOIR&share=vera@example.org"
    created = await answered(await editor.post(f"/api/videos?{query}", json=body), 201)
    expected = VideoAccess(
        visibility=Visibility.PRIVATE,
        signed_in_only=True,
        shares=shares_of(dict.fromkeys((choir.id, vera.id), Right.WATCH)),
    )
    assert recorded_access(await Video.get(id=created["id"])) == expected
    # It never had another audience.
    events = await Event.all().values_list("action", flat=True)
    assert [action for action in events if "video" in str(action)] == ["video.published"]
    page = await answered(await (await signed_in(app, vera)).get("/api/videos?shared=true"))
    assert [video["id"] for video in page["videos"]] == [created["id"]]
    # A repetition doesn't change the audience, nor look for the names.
    for again in ("share=ghost", "visibility=private", ""):
        repeated = await answered(await editor.post(f"/api/videos?{again}", json=body))
        assert repeated["id"] == created["id"]
        assert recorded_access(await Video.get(id=created["id"])) == expected


async def test_audience_of_a_new_video_has_its_faults(
    editor: Sender, resources: WebContext
) -> None:
    body = metadata(await uploaded(editor))
    unknown = await editor.post("/api/videos?share=ghost&share=ed@example.org&share=", json=body)
    errors = (await problem(unknown, 422, "validation_failed"))["errors"]
    assert {fault["pointer"] for fault in errors} == {"/share"}
    remedy = "is nobody here. Give the e-mail address of an account, or the name of a group."
    assert errors[0]["message"] == f"“ghost” {remedy}"
    many = "&".join(f"share={number}" for number in range(MAX_SHARES + 1))
    for query, pointer, message in (
        ("visibility=unlisted&signedInOnly=true", "/signedInOnly", "Only a private video"),
        ("signedInOnly=true", "/signedInOnly", "Only a private video"),
        ("signedInOnly=perhaps", "/signedInOnly", ""),
        ("shares=ghost", "/shares", "Did you mean `share`?"),
        (many, "/share", "Give at most 500."),
    ):
        [fault] = (await faults(await editor.post(f"/api/videos?{query}", json=body))).items()
        assert fault[0] == pointer, query
        assert message in fault[1], query
    for name, remedy in (("signedInOnly", "&signedInOnly=true"), ("shares", "?share=NAME")):
        response = await editor.post("/api/videos", json={**body, name: True})
        assert remedy in (await faults(response))[f"/{name}"]
    assert await counts(resources.config.database_url) == (0, 0)
    await answered(await editor.post("/api/videos", json=body), 201)


async def test_upload_offers_the_same_choices_where_there_are_accounts(
    anyone: Sender, app: Quart
) -> None:
    assert "everyone with an account" not in (text := await page(anyone, "/upload"))
    assert 'name="share"' not in text
    text = await page(await signed_in(app, await make_account("olga")), "/upload")
    assert re.search(r'<option value="members"\s*>Members: everyone with an account<', text)
    assert re.search(r'<input[^>]*name="share"[^>]*list="holders"', text)
    assert 'hx-get="/directory"' in text


async def test_many_editors_share_at_the_same_time(olga: Account) -> None:
    video = await ready_video(olga, visibility="private")
    ids = [uuid4() for _ in range(50)]
    base = mergeable("private", (), (), signed_in_only=False, has_public_page=False)

    async def add(holder_id: UUID) -> None:
        access = VideoAccess(
            visibility=Visibility.PRIVATE, shares=shares_of({holder_id: Right.WATCH})
        )
        await merge_access(video.id, access, base=base)

    await asyncio.gather(*map(add, ids))
    stored = recorded_access(await Video.get(id=video.id))
    assert {share.holder_id for share in stored.shares} == set(ids)


async def test_two_rights_for_one_person_are_a_conflict(
    owner: Sender, editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith, visibility="private")
    await make_account("vera", Role.VIEWER)
    path = f"/videos/{video.id}/access/panel"
    await send(owner, path, form_of(video, added="vera@example.org", addedRight="watch"), 200)
    form = form_of(video, added="vera@example.org", addedRight="edit")
    words = words_of(await send(editor, path, form, 409))
    assert "both changed the people and groups it is shared with" in words
    assert "Your version vera@example.org: Can edit" in words
    assert "Their version vera@example.org: Can watch" in words


async def test_shared_videos_have_their_own_lists(cast: Cast) -> None:
    own = cast.senders["its editor"][0]
    video = await ready_video(cast.editor, visibility="unlisted")
    await ready_video(cast.editor)
    eve = cast.senders["another editor"][0]
    await share(own, video, "eve@example.org", "edit")
    lists = ("/?whose=shared", "/videos?whose=shared")
    for path in lists:
        assert f"/videos/{video.id}" in await page(eve, path)
        assert re.search(r"\b1 video\b", words_of(await page(eve, path))), path
    for query, sender, count in (
        ("shared=true", eve, 1),
        ("", eve, 2),
        ("shared=true", own, 0),
        ("shared=true", cast.senders["nobody"][0], 0),
    ):
        listed = await answered(await sender.get(f"/api/videos?{query}"))
        assert len(listed["videos"]) == count, query
    await share(own, video, "eve@example.org", "watch")
    text = words_of(await page(eve, "/videos?whose=shared"))
    assert "Nothing is shared with you for editing yet" in text
    viewer = cast.senders["viewer"][0]
    assert "Nothing is shared with you yet" in words_of(await page(viewer, "/?whose=shared"))
