"""Changes of a video by merge patches, and its deletion by DELETE."""

import asyncio
import json
from typing import Any

import pytest
from api_client import CREATED_MEMBERS, Client, answered, faults, problem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_rows import change_video, make_row
from passes import tools_for
from quart import Quart, Response
from signed_in import make_account, make_video, program, token_of

from portal.database.account_models import Account, Role
from portal.database.models import Publication, Video, Visibility
from portal.films.removal import remove_files
from portal.http.composition import WebContext
from portal.videos.metadata import title_fault

pytestmark = pytest.mark.shared_app

MERGE_PATCH = "application/merge-patch+json"
PRIVATE = {"visibility": "private", "signedInOnly": False, "embedOrigins": []}
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
PATCHES = st.fixed_dictionaries(
    {},
    optional={
        "title": TEXTS.filter(lambda text: title_fault(text) is None),
        "description": TEXTS | st.none(),
        "categoryIds": st.lists(st.integers(1, 16), min_size=1, max_size=4),
        "tags": TEXTS | st.none(),
        "passthrough": TEXTS | st.none(),
        "visibility": st.sampled_from(["public", "unlisted", "private"]),
    },
)


async def patch(client: Client, video_id: Any, body: Any, etag: str = "") -> Response:
    headers = {"Content-Type": MERGE_PATCH} | ({"If-Match": etag} if etag else {})
    return await client.patch(f"/api/videos/{video_id}", data=json.dumps(body), headers=headers)


async def read(client: Client, video_id: Any) -> tuple[dict[str, Any], str]:
    """Return the editable values and their ETag, from an empty patch."""
    response = await patch(client, video_id, {})
    return await answered(response), response.headers["ETag"]


@given(patches=st.lists(PATCHES, min_size=1, max_size=3))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_patch_changes_what_it_names_and_nothing_else(
    client: Client, patches: list[dict[str, Any]]
) -> None:
    video = await make_row()
    for body in patches:
        before, etag = await read(client, video.id)
        expected = {
            **before,
            **{name: "" if value is None else value for name, value in body.items()},
        }
        response = await patch(client, video.id, body, etag)
        assert await answered(response) == expected
        newest = response.headers["ETag"]
        assert (await read(client, video.id)) == (expected, newest)
        # A repeated change with the earlier version succeeds: its answer may have been lost.
        again = await patch(client, video.id, body, etag)
        assert await answered(again) == expected
        assert again.headers["ETag"] == newest
    await Publication.filter(id=video.id).delete()


async def test_patch_is_one_change_with_its_events(client: Client) -> None:
    video = await make_row(visibility=Visibility.PRIVATE, signed_in_only=True)
    address = f"/api/videos/{video.id}"
    before = await answered(await client.get(address))
    body = {"title": "Harbour at dusk", "visibility": "unlisted"}
    edited = await answered(await patch(client, video.id, body))
    assert edited.items() >= body.items()
    record = await answered(await client.get(address))
    assert record["updatedAt"] > before["updatedAt"]
    changed = {"title": body["title"], "updatedAt": record["updatedAt"]}
    assert record == {**before, **changed}
    events = (await answered(await client.get("/api/events")))["events"]
    assert [event["type"] for event in events] == ["video.updated"] * 2
    assert {event["data"]["title"] for event in events} == {"Harbour at dusk"}


async def test_passthrough_is_in_metadata_and_events(client: Client) -> None:
    video = await make_row()
    address = f"/api/videos/{video.id}"
    text = "é" * 512
    for body in ({"passthrough": text}, {"title": "New"}):
        assert (await answered(await patch(client, video.id, body)))["passthrough"] == text
    assert (await answered(await client.get(f"{address}/metadata")))["passthrough"] == text
    events = (await answered(await client.get("/api/events")))["events"]
    assert [event["data"]["passthrough"] for event in events] == [text, text]


async def test_one_of_simultaneous_patches_of_a_version_succeeds(client: Client) -> None:
    video = await make_row()
    _, etag = await read(client, video.id)
    bodies = [{"title": f"Editor {number}"} for number in range(8)]
    answers = await asyncio.gather(*(patch(client, video.id, body, etag) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7
    results = zip(bodies, answers, strict=True)
    [winner] = [body for body, answer in results if answer.status_code == 200]
    assert (await Video.get(id=video.id)).title == winner["title"]
    await answered(await patch(client, video.id, {"title": "Mine"}, "*"))


async def test_records_have_the_members_that_include_names(client: Client) -> None:
    video = await make_row(
        passthrough="17",
        visibility=Visibility.UNLISTED,
        status="failed",
        failure_code="damaged",
        failure_message="It is damaged.",
    )
    address = f"/api/videos/{video.id}"
    plain = await answered(await client.get(address))
    assert set(plain) == CREATED_MEMBERS | {"playbackUrl"}
    page = f"http://127.0.0.1:8000/videos/{video.id}"
    details = {
        "visibility": "unlisted",
        "approval": "approved",
        "durationSeconds": None,
        "pageUrl": page,
        "embedUrl": page.replace("/videos/", "/embed/"),
        "posterUrl": None,
        "failure": {"code": "damaged", "message": "It is damaged."},
    }
    included = {"passthrough": "17", "details": details}
    for query in ("include=passthrough,details", "include=details&include=passthrough"):
        assert await answered(await client.get(f"{address}?{query}")) == plain | included
        listed = await answered(await client.get(f"/api/videos?{query},matches"))
        assert listed["videos"] == [plain | included | {"matches": []}]
    only = await answered(await client.get("/api/videos?include=details"))
    assert only["videos"] == [plain | {"details": details}]
    for path, pointer in ((address, "/include/1"), ("/api/videos", "/include/2")):
        query = "include=details,matches,speech"
        assert (await faults(await client.get(f"{path}?{query}")))[pointer].startswith("Choose ")


@pytest.mark.parametrize("theirs", [{"title": "Theirs"}, {"visibility": "unlisted"}])
async def test_patch_of_another_version_returns_the_present_values(
    client: Client, theirs: dict[str, str]
) -> None:
    video = await make_row()
    _, outdated = await read(client, video.id)
    await answered(await patch(client, video.id, theirs))
    present, newest = await read(client, video.id)
    for body in ({"title": "Mine"}, {**theirs, "visibility": "private"}):
        response = await patch(client, video.id, body, outdated)
        details = await problem(response, 412, "metadata_changed")
        assert (details["present"], response.headers["ETag"]) == (present, newest)
    assert await read(client, video.id) == (present, newest)
    await answered(await patch(client, video.id, {"title": "Mine"}, newest))


async def test_etag_of_the_record_fits_patch_and_delete_until_the_metadata_change(
    client: Client,
) -> None:
    video = await make_row()
    address = f"/api/videos/{video.id}"
    first = (await client.get(address)).headers["ETag"]
    # Processing changes the record, but nothing that PATCH changes.
    await change_video(video.id, status="failed", failure_code="x", failure_message="")
    processed = (await client.get(address)).headers["ETag"]
    assert processed != first
    edited = await patch(client, video.id, {"title": "Mine"}, first)
    await answered(edited)
    metadata = await client.get(f"{address}/metadata")
    assert metadata.headers["ETag"] == edited.headers["ETag"]
    same = {"If-None-Match": metadata.headers["ETag"]}
    assert (await client.get(f"{address}/metadata", headers=same)).status_code == 304
    for outdated in (first, processed, '"1"'):
        headers = {"If-Match": outdated}
        response = await client.delete(address, headers=headers)
        document = await problem(response, 412, "metadata_changed")
        assert document["present"]["title"] == "Mine"
        assert response.headers["ETag"] == edited.headers["ETag"]
        edit = await patch(client, video.id, {"title": "B"}, outdated)
        await problem(edit, 412, "metadata_changed")
    newest = (await client.get(address)).headers["ETag"]
    put = await client.put(f"{address}/access", json=PRIVATE, headers={"If-Match": "*"})
    await answered(put)
    response = await client.delete(address, headers={"If-Match": newest})
    assert (await problem(response, 412, "metadata_changed"))["present"]["visibility"] == "private"
    newest = (await client.get(address)).headers["ETag"]
    await answered(await client.delete(address, headers={"If-Match": newest}), 202)


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({"title": None}, "/title"),
        ({"categoryIds": None}, "/categoryIds"),
        ({"visibility": None}, "/visibility"),
        ({"passthrough": "é" * 513}, "/passthrough"),
        ({"title": "New", "fileName": "other.mp4"}, "/fileName"),
        (["title"], ""),
    ],
)
async def test_invalid_patch_names_the_member_and_changes_nothing(
    client: Client, body: Any, member: str
) -> None:
    video = await make_row()
    assert list(await faults(await patch(client, video.id, body))) == [member]
    assert (await Video.get(id=video.id)).title == video.title


async def test_viewers_of_a_deleted_video_may_repeat_delete_until_the_files_are_removed(
    app: Quart, resources: WebContext, edith: Account
) -> None:
    video = await make_video(edith, visibility=Visibility.PRIVATE)
    edna = program(app, await token_of(await make_account("edna", Role.EDITOR)))
    owner = program(app, await token_of(edith))
    address = f"/api/videos/{video.id}"
    await problem(await edna.ask("DELETE", address), 404, "video_not_found")
    assert await answered(await owner.ask("DELETE", address), 202) == {"id": str(video.id)}
    await problem(await edna.ask("DELETE", address), 404, "video_not_found")
    assert (await owner.ask("DELETE", address)).status_code == 204
    await remove_files(video.id, tools_for(resources))
    await problem(await owner.ask("DELETE", address), 404, "video_not_found")
