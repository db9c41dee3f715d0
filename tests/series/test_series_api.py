"""The API of series: records, lists, order, versions and deletion."""

import asyncio
from uuid import UUID, uuid4

import pytest
from api_client import UNKNOWN_VIDEO_ID, answered, problem
from page_rows import READY
from playable_videos import Cast, ready_video
from quart import Quart, Response
from series_calls import ids_of, make_series, patch, put_audience, put_videos, videos_of
from signed_in import Sender, make_account, make_video, person, program, signed_in, token_of

from portal.accounts import people
from portal.accounts.permissions import EVERYONES, Audience, visible_to
from portal.database.account_models import Role, Scope
from portal.database.connection import fetch_rows
from portal.database.models import Publication, Visibility
from portal.features.deletion import service as deletion
from portal.features.series import service
from portal.features.series.service import parse_place, with_hidden

pytestmark = pytest.mark.shared_app
MEMBERS = {
    "id",
    "title",
    "description",
    "visibility",
    "videoCount",
    "ownerId",
    "createdAt",
    "updatedAt",
    "pageUrl",
}


async def test_series_is_created_read_changed_and_deleted_under_its_version(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    body = {"title": " Birds <b>", "description": "Of the coast"}
    response = await editor.post("/api/series", json=body)
    record = await answered(response, 201)
    assert set(record) == MEMBERS | {"videoIds"}
    assert (record["title"], record["visibility"], record["videoIds"]) == (
        " Birds <b>",
        "public",
        [],
    )
    assert record["ownerId"] == str(cast.editor.id)
    address = f"/api/series/{record['id']}"
    assert response.headers["Location"] == address
    version = response.headers["ETag"]
    read = await editor.get(address)
    assert (await answered(read), read.headers["ETag"]) == (record, version)
    assert (await editor.get(address, headers={"If-None-Match": version})).status_code == 304

    changed = await patch(editor, record["id"], version, title="Gulls", description=None)
    assert (await answered(changed))["title"] == "Gulls"
    # A repetition asks for nothing new; anything else is a conflict.
    again = await patch(editor, record["id"], version, title="Gulls", description=None)
    assert again.headers["ETag"] == changed.headers["ETag"] != version
    await problem(await patch(editor, record["id"], version, title="Terns"), 412, "series_changed")
    for method, path, json in (
        ("PATCH", address, {"title": "Terns"}),
        ("DELETE", address, {}),
        ("PUT", f"{address}/videos", {"videoIds": []}),
        ("PUT", f"{address}/access", {"visibility": "public", "signedInOnly": False}),
    ):
        missing = await editor.ask(method, path, json=json)
        await problem(missing, 428, "precondition_required")

    late_deletion = await editor.ask("DELETE", address, headers={"If-Match": version})
    await problem(late_deletion, 412, "series_changed")
    present = {"If-Match": changed.headers["ETag"]}
    assert (await editor.ask("DELETE", address, headers=present)).status_code == 204
    await problem(await editor.get(address), 404, "series_not_found")
    actions = await fetch_rows(
        "SELECT action, detail FROM events WHERE object_id = %s", record["id"]
    )
    assert [(row["action"], row["detail"]) for row in actions] == [
        ("series.made", {}),
        ("series.changed", {"fields": "title, description"}),
        ("series.removed", {}),
    ]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/title"),
        ({"title": " "}, "/title"),
        ({"title": "x" * 201}, "/title"),
        ({"title": "Birds", "visibility": "secret"}, "/visibility"),
        ({"title": "Birds", "videoIds": []}, "/videoIds"),
    ],
)
async def test_faults_of_a_new_series_are_named(
    cast: Cast, body: dict[str, object], pointer: str
) -> None:
    response = await cast.senders["its editor"][0].post("/api/series", json=body)
    refused = await problem(response, 422, "validation_failed")
    assert [fault["pointer"] for fault in refused["errors"]] == [pointer]


async def test_list_of_videos_keeps_its_order_and_names_what_is_wrong(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    videos = [await ready_video(cast.editor) for _ in range(4)]
    ids = ids_of(videos)
    hidden = str((await ready_video(await make_account("zoe"), visibility="private")).id)
    series_id = await make_series(editor, *videos)
    assert await videos_of(editor, series_id) == ids
    for order in (ids[::-1], ids[1:], [ids[3], ids[0], ids[2], ids[1]]):
        await answered(await put_videos(editor, series_id, order))
        assert await videos_of(editor, series_id) == order
    for wrong in (UNKNOWN_VIDEO_ID, hidden, ids[1]):
        response = await put_videos(editor, series_id, [*ids[:3], wrong])
        refused = await problem(response, 422, "validation_failed")
        assert [fault["pointer"] for fault in refused["errors"]] == ["/videoIds/3"]
    await problem(await put_videos(editor, series_id, ["no id"]), 422, "validation_failed")
    await problem(
        await put_videos(editor, series_id, [str(uuid4()) for _ in range(501)]),
        422,
        "validation_failed",
    )
    assert await videos_of(editor, series_id) == order

    # A list of the library keeps the order, and can have another one.
    listed = await answered(await editor.get(f"/api/videos?series={series_id}&limit=3"))
    assert [video["id"] for video in listed["videos"]] == order[:3]
    cursor = listed["nextCursor"]
    following = await answered(await editor.get(f"/api/videos?series={series_id}&cursor={cursor}"))
    assert [video["id"] for video in following["videos"]] == order[3:]
    oldest = await answered(await editor.get(f"/api/videos?series={series_id}&sort=oldest"))
    assert [video["id"] for video in oldest["videos"]] == ids
    matching = await answered(await editor.get(f"/api/videos?series={series_id}&q=video"))
    assert [video["id"] for video in matching["videos"]] == order
    await problem(await editor.get(f"/api/videos?series={uuid4()}"), 404, "series_not_found")


async def test_videos_are_added_at_the_end_once(app: Quart, cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    first, second, third = ids_of([await ready_video(cast.editor) for _ in range(3)])
    series_id = await make_series(editor)
    address = f"/api/series/{series_id}/videos"
    for added, order in (
        ([second], [second]),
        ([first, second], [second, first]),
        ([third], [second, first, third]),
    ):
        response = await editor.post(address, json={"videoIds": added})
        assert (await answered(response))["videoIds"] == order
    refused = await editor.post(address, json={"videoIds": [first, UNKNOWN_VIDEO_ID]})
    faults = (await problem(refused, 422, "validation_failed"))["errors"]
    assert [fault["pointer"] for fault in faults] == ["/videoIds/1"]
    stranger = await signed_in(app, await make_account("zed", Role.EDITOR))
    await problem(await stranger.post(address, json={"videoIds": []}), 403, "not_allowed")


async def test_deleted_video_leaves_its_series(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    videos = [await ready_video(cast.editor) for _ in range(3)]
    series_id = await make_series(editor, *videos)
    other_id = await make_series(editor, videos[1])
    await deletion.delete_undoably(videos[1].id)
    assert await videos_of(editor, series_id) == ids_of([videos[0], videos[2]])
    assert await videos_of(editor, other_id) == []
    # The place is kept as long as the deletion can be undone, and goes with the video.
    await answered(await put_videos(editor, series_id, ids_of([videos[2], videos[0]])))
    rows = await fetch_rows(service.MEMBERS, UUID(series_id))
    assert [row["video_id"] for row in rows] == [videos[2].id, videos[1].id, videos[0].id]
    assert (await editor.ask("DELETE", f"/api/videos/{videos[2].id}")).status_code == 202
    rows = await fetch_rows(service.MEMBERS, UUID(series_id))
    assert [row["video_id"] for row in rows] == [videos[1].id, videos[0].id]


async def test_fifty_concurrent_changes_lose_none(cast: Cast) -> None:
    editor, principal = cast.senders["its editor"]
    videos = [await ready_video(cast.editor) for _ in range(50)]
    series_id = await make_series(editor)
    series = UUID(series_id)
    additions = (service.add_videos(series, [video.id], by=principal) for video in videos)
    await asyncio.gather(*additions)
    assert sorted(await videos_of(editor, series_id)) == sorted(ids_of(videos))
    # Only one of several programs that read the same version can write.
    read = await editor.get(f"/api/series/{series_id}")
    order = (await answered(read))["videoIds"]
    version = read.headers["ETag"]

    async def leave_out(index: int) -> Response:
        return await put_videos(editor, series_id, order[:index] + order[index + 1 :], version)

    answers = await asyncio.gather(*(leave_out(index) for index in range(50)))
    statuses = [answer.status_code for answer in answers]
    assert sorted(statuses) == [200, *[412] * 49]
    remaining = await videos_of(editor, series_id)
    assert remaining == [member for member in order if member != order[statuses.index(200)]]
    # People move and remove at the same time.
    moved = [
        service.move_video(series, UUID(remaining[index]), 48 - index, by=principal)
        for index in range(10)
    ]
    removed = [
        service.remove_video(series, UUID(member), by=principal) for member in remaining[10:20]
    ]
    edited = [
        service.edit(series, lambda recorded: recorded, versions=None),
        *(patch(editor, series_id, title=f"Birds {number}") for number in range(10)),
    ]
    await asyncio.gather(*moved, *removed, *edited)
    assert set(await videos_of(editor, series_id)) == set(remaining) - set(remaining[10:20])
    rows = await fetch_rows("SELECT version FROM series WHERE id = %s", series)
    changes = await fetch_rows(
        "SELECT count(*) AS total FROM events WHERE object_id = %s", series_id
    )
    assert rows[0]["version"] == changes[0]["total"]


async def test_removals_of_videos_and_changes_of_series_never_wait_for_each_other(
    cast: Cast,
) -> None:
    principal = cast.senders["its editor"][1]
    videos = [await ready_video(cast.editor) for _ in range(12)]
    series_ids = [UUID(await make_series(cast.senders["its editor"][0], *videos)) for _ in "ab"]

    async def remove(video_id: UUID) -> None:
        await Publication.filter(id=video_id).delete()

    await asyncio.gather(
        *(remove(video.id) for video in videos[:6]),
        *(
            service.move_video(changed_id, video.id, 0, by=principal)
            for changed_id in series_ids
            for video in videos[::-1]
        ),
    )
    for changed_id in series_ids:
        members = await service.fetch_videos_of(changed_id, visible_to(principal))
        assert {member.id for member in members} == {video.id for video in videos[6:]}


def test_hidden_videos_stay_at_their_places() -> None:
    a, b, c, x, y = (uuid4() for _ in range(5))
    assert with_hidden([x, a, y, b], {x, y}, [b, a]) == [x, b, y, a]
    assert with_hidden([a, x, b], {x}, []) == [x]
    assert with_hidden([a, b, x, y], {x, y}, [b, c, a]) == [b, c, x, y, a]
    assert with_hidden([a, b], set(), [b]) == [b]


async def test_list_of_series_is_paged_newest_first(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    ids = [await make_series(editor, title=f"Birds {number}") for number in range(5)]
    cursor = ""
    listed: list[str] = []
    for size in (2, 2, 1):
        page = await editor.get(f"/api/series?limit=2{cursor}")
        answer = await answered(page)
        assert all(set(record) == MEMBERS for record in answer["series"])
        assert len(answer["series"]) == size
        listed += [record["id"] for record in answer["series"]]
        cursor = f"&cursor={answer['nextCursor']}"
        assert ("Link" in page.headers) is (size == 2 and len(listed) < 5)
    assert listed == ids[::-1]
    for wrong in ("x", "1-2", f"99999999999999999999-{uuid4().hex}"):
        await problem(await editor.get(f"/api/series?cursor={wrong}"), 422, "validation_failed")
        assert parse_place(wrong) is None


async def test_rights_of_accounts_and_tokens(app: Quart, cast: Cast) -> None:
    owner_of_series = cast.senders["its editor"][0]
    series_id = await make_series(owner_of_series)
    viewer = cast.senders["named person"][0]
    other = cast.senders["another editor"][0]
    await problem(await viewer.post("/api/series", json={"title": "Mine"}), 403, "not_allowed")
    refused = await problem(await patch(other, series_id, title="Mine"), 403, "not_allowed")
    assert "made this series" in refused["detail"]
    for name in ("admin", "owner"):
        await answered(await patch(cast.senders[name][0], series_id, title=f"Of {name}"))
    share = {"name": "eve@example.org", "right": "edit"}
    await answered(await put_audience(owner_of_series, series_id, shares=[share]))
    await answered(await patch(other, series_id, title="Shared"))
    # Who gives up the right to edit gets the answer to that.
    response = await put_audience(other, series_id, shares=[])
    assert (await answered(response))["shares"] == []
    await problem(await other.get(f"/api/series/{series_id}"), 404, "series_not_found")

    reads = program(app, await token_of(cast.editor, [Scope.READ]))
    writes = program(app, await token_of(cast.editor, [Scope.READ, Scope.WRITE]))
    await answered(await reads.get(f"/api/series/{series_id}"))
    await problem(await patch(reads, series_id, title="Read"), 403, "insufficient_scope")
    await answered(await patch(writes, series_id, title="Written"))


async def test_audience_of_a_series_is_changed_as_that_of_a_video(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    series_id = await make_series(editor)
    address = f"/api/series/{series_id}/access"
    read = await editor.get(address)
    assert await answered(read) == {
        "visibility": "public",
        "signedInOnly": False,
        "shares": [],
        "hasPassword": False,
    }
    shares = [{"name": "Choir", "right": "watch"}]
    first = await put_audience(editor, series_id, shares=shares)
    assert [share["name"] for share in (await answered(first))["shares"]] == ["Choir"]
    body = {"visibility": "private", "signedInOnly": True}
    late = await editor.ask("PUT", address, json=body, headers={"If-Match": read.headers["ETag"]})
    await problem(late, 412, "access_changed")
    # A request without shares leaves them.
    response = await editor.ask(
        "PUT", address, json=body, headers={"If-Match": first.headers["ETag"]}
    )
    record = await answered(response)
    assert (record["signedInOnly"], len(record["shares"])) == (True, 1)
    for wrong in (
        {"visibility": "public", "signedInOnly": True},
        {"embedOrigins": []},
        {"shares": [{"name": "nobody@example.org", "right": "edit"}]},
    ):
        await problem(await put_audience(editor, series_id, **wrong), 422, "validation_failed")
    # What becomes public is no longer limited to accounts.
    await answered(await patch(editor, series_id, visibility="public"))
    assert (await answered(await editor.get(address)))["signedInOnly"] is False


async def test_series_go_to_the_heir_of_their_account(app: Quart) -> None:
    series_id = await service.create("Open", "", audience=Audience(Visibility.PUBLIC))
    olga = await make_account("olga")
    ed = await make_account("ed", Role.EDITOR)
    of_ed = UUID(await make_series(await signed_in(app, ed), await make_video(ed, **READY)))
    await people.remove(ed.id, by=person(olga))
    rows = await fetch_rows("SELECT id, owner_id FROM series")
    assert {row["id"]: row["owner_id"] for row in rows} == {series_id: olga.id, of_ed: olga.id}


async def test_everyone_changes_series_on_an_open_portal(app: Quart) -> None:
    anyone = Sender(app)
    video = await make_video(None, **READY)
    series_id = await make_series(anyone, video)
    record = await answered(await anyone.get(f"/api/series/{series_id}"))
    assert (record["ownerId"], record["videoIds"]) == (None, [str(video.id)])
    assert [summary.id for summary in await service.series_to_edit(EVERYONES)] == [UUID(series_id)]
    assert [summary.id for summary in await service.series_of(video.id, EVERYONES)] == [
        UUID(series_id)
    ]
