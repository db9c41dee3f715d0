"""The list of videos over JSON: filters, who sees what, and walks along cursors."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from api_client import Client, answered, problem, published
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from library_pages import FAILED, add_video
from page_rows import NOW, READY, make_row
from quart import Quart
from signed_in import configure, make_account, make_video, program, signed_in, token_of

from portal.database.account_models import Account, Role, Scope
from portal.database.models import Publication, Video, Visibility
from portal.features.deletion.service import delete_undoably
from portal.videos import library
from portal.videos.library_queries import Sort

pytestmark = pytest.mark.shared_app


async def listed(client: Any, query: str = "") -> list[str]:
    body = await answered(await client.get(f"/api/videos{query}"))
    return [video["id"] for video in body["videos"]]


async def test_list_holds_retrieval_records_and_is_answered_304_while_it_is_the_same(
    client: Client,
) -> None:
    created = await published(client)
    response = await client.get("/api/videos")
    body = await answered(response)
    assert body == {
        "videos": [{**created, "playbackUrl": ""}],
        "nextCursor": None,
        "searchedFor": None,
    }
    assert "Link" not in response.headers
    headers = {"If-None-Match": response.headers["ETag"]}
    assert (await client.get("/api/videos", headers=headers)).status_code == 304


async def test_filters_may_be_combined(client: Client) -> None:
    first = await make_row(1, **READY, title="Harbour", tags="sea, boats", category_ids=[3])
    second = await make_row(2, title="Crane", tags="harbour")
    hidden = await make_row(3, visibility=Visibility.UNLISTED)
    later = quote((NOW + timedelta(minutes=1, seconds=30)).isoformat())
    for query, matches in (
        ("status=processing", [hidden, second]),
        ("category=3", [first]),
        ("tag=boats", [first]),
        ("q=harbour", [first, second]),
        ("q=harbour&sort=newest", [second, first]),
        (f"createdAfter={later}", [hidden, second]),
        (f"createdBefore={later}&status=ready", [first]),
        (f"updatedAfter={later}", []),
        ("visibility=unlisted", [hidden]),
        (f"id={first.id}", [first]),
        (f"id={first.id}&id={hidden.id}&id={Video().id}", [hidden, first]),
        ("sort=title&limit=2&createdAfter=1999-01-01T00:00:00%2B19:28", [second, first]),
    ):
        assert await listed(client, f"?{query}") == [str(video.id) for video in matches], query


async def test_every_change_of_a_video_updates_its_time_in_lists(client: Client) -> None:
    video = await make_row()
    address = f"/api/videos/{video.id}"
    captions = f"{address}/captions"
    access = {"visibility": "public", "signedInOnly": False, "embedOrigins": ["https://a.example"]}
    chapters = {"chapters": [{"startSeconds": 0, "title": "Dawn"}]}
    webvtt = "WEBVTT\n\n0:01.000 --> 0:02.000\nHi"
    text = {"data": webvtt, "headers": {"Content-Type": "text/vtt"}}
    overwrite = {"If-Match": "*"}
    changed_at = (await answered(await client.get(address)))["updatedAt"]
    for change in (
        client.patch(address, json={"visibility": "unlisted"}),
        client.put(f"{address}/access", json=access, headers=overwrite),
        client.patch(address, json={"passthrough": "17"}),
        client.post(f"{captions}?language=en", **text),
        client.patch(f"{captions}/en", json={"isDefault": True}),
        client.delete(f"{captions}/en"),
        client.put(f"{address}/chapters", json=chapters),
    ):
        assert (await change).status_code < 300
        response = await client.get("/api/videos", query_string={"updatedAfter": changed_at})
        [record] = (await answered(response))["videos"]
        assert record["updatedAt"] > changed_at
        changed_at = record["updatedAt"]
    # A request that changes nothing moves nothing.
    await answered(await client.put(f"{address}/chapters", json=chapters))
    assert (await answered(await client.get(address)))["updatedAt"] == changed_at


@pytest.mark.parametrize(
    ("query", "member"),
    [
        ("limit=0", "/limit"),
        ("limit=201", "/limit"),
        ("createdAfter=0.5", "/createdAfter"),
        ("createdAfter=0001-01-01T00:00:00%2B19:28", "/createdAfter"),
        ("sort=best", "/sort"),
        ("id=5d0e", "/id/0"),
        ("cursor=0-x", "/cursor"),
        ("Status=ready", "/Status"),
        ("&".join(f"id={Video().id}" for _ in range(101)), "/id"),
    ],
)
async def test_invalid_parameters_of_the_list_are_named(
    client: Client, query: str, member: str
) -> None:
    response = await client.get(f"/api/videos?{query}")
    body = await problem(response, 422, "validation_failed")
    assert [error["pointer"] for error in body["errors"]] == [member]


# Few distinct values, so that many videos are equal in the sort column.
VIDEOS = st.lists(
    st.builds(
        lambda state, **values: {**state, **values},
        state=st.sampled_from([READY, FAILED, {}]),
        number=st.integers(0, 2),
        title=st.sampled_from(["Boat", "Sea"]),
        tags=st.sampled_from(["", "boat, sun"]),
        category_ids=st.sampled_from([[1], [1, 3]]),
        duration_s=st.sampled_from([None, 0.5, 60.0]),
        size_bytes=st.integers(1, 2),
        visibility=st.sampled_from(Visibility),
        views=st.integers(0, 2),
    ),
    min_size=3,
    max_size=7,
)
MINUTE = quote((NOW + timedelta(minutes=1)).isoformat())
FILTERS = (
    "tag=boat",
    "category=3",
    "status=ready",
    "visibility=public",
    f"createdAfter={MINUTE}",
    f"createdBefore={MINUTE}",
    "updatedAfter=2026-01-01T00:00:00Z",
)
QUERIES = st.builds(
    lambda sort, words, filters: "&".join([f"sort={sort}&q={words}", *filters]),
    sort=st.just(Sort.RELEVANCE) | st.sampled_from(Sort),
    words=st.sampled_from(["", "boat"]),
    filters=st.lists(st.sampled_from(FILTERS), max_size=2, unique=True),
)


@given(stay=VIDEOS, others=VIDEOS, query=QUERIES, limit=st.integers(1, 4), is_long=st.booleans())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_walk_meets_each_video_once_while_others_come_and_go(
    client: Client, stay: Any, others: Any, query: str, limit: int, is_long: bool
) -> None:
    await Publication.all().delete()
    staying = {str((await add_video(**columns)).id) for columns in stay}
    leaving = [await add_video(**columns) for columns in others[::2]]
    coming = others[1::2]
    address = f"/api/videos?{query}&limit={limit}"
    met = []
    with pytest.MonkeyPatch.context() as patch:
        # Like a long library, of which a search examines a part.
        patch.setattr(library, "COUNT_CAP", 1 if is_long else 1000)
        patch.setattr(library, "WALK_STEPS", 5)
        while address:
            response = await client.get(address)
            met += [video["id"] for video in (await answered(response))["videos"]]
            address = response.headers.get("Link", "").removeprefix("<").partition(">")[0]
            if leaving:
                await delete_undoably(leaving.pop().id)
            if coming:
                await add_video(**coming.pop())
    assert len(met) == len(set(met))
    whole = await listed(client, f"?{query}&limit=200")
    assert [video_id for video_id in met if video_id in staying] == [
        video_id for video_id in whole if video_id in staying
    ]


async def test_views_are_listed_for_viewers_unless_they_are_switched_off(
    app: Quart, edith: Account
) -> None:
    first = await make_video(edith, views=3)
    second = await make_video(edith, views=12)
    by_views = "/api/videos?sort=-views&include=views"
    anyone = app.test_client()
    by_edith = await signed_in(app, edith)

    async def views(client: Any, address: str = by_views) -> list[int | None]:
        return [video["views"] for video in (await answered(await client.get(address)))["videos"]]

    assert await views(anyone) == [12, 3]
    assert "views" not in (await answered(await anyone.get("/api/videos")))["videos"][0]
    configure(app, show_views=False)
    await problem(await anyone.get(by_views), 403, "not_allowed")
    assert await views(anyone, "/api/videos?include=views") == [None, None]
    record = await anyone.get(f"/api/videos/{first.id}?include=views")
    assert (await answered(record))["views"] is None
    assert await views(by_edith) == [12, 3]
    record = await by_edith.get(f"/api/videos/{second.id}?include=views")
    assert (await answered(record))["views"] == 12


async def test_owner_and_admins_alone_filter_by_owner(app: Quart, edith: Account) -> None:
    public = await make_video(edith)
    private = await make_video(edith, visibility=Visibility.PRIVATE)
    edna = await make_account("edna", Role.EDITOR)
    admin = await make_account("adam", Role.ADMIN)
    both = [str(private.id), str(public.id)]
    own = f"?owner={edith.email}"
    token = program(app, await token_of(admin, [Scope.READ]))
    by_edith = await signed_in(app, edith)
    by_edna = await signed_in(app, edna)
    assert await listed(by_edith, own) == await listed(token, own) == both
    assert await listed(token, "?owner=nobody@example.org") == []
    # The answers are the same whether or not the account exists.
    for owner in (edith.email, "nobody@example.org"):
        for sender in (by_edna, app.test_client()):
            address = f"/api/videos?owner={owner}"
            await problem(await sender.get(address), 403, "not_allowed")
