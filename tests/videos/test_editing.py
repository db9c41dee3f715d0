"""Editors change what is said of a video, and never overwrite each other without knowing."""

import asyncio
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from api_client import Client, faults, problem, published
from page_rows import READY, make_row
from quart import Response

from portal.database.models import Video

pytestmark = pytest.mark.shared_app

FORM = {"title": "New", "description": "Words", "categoryIds": ["2", "5"], "tags": "a, b"}
BODY = {"title": "New", "description": "Words", "categoryIds": [2, 5], "tags": "a, b"}
URLENCODED = {"Content-Type": "application/x-www-form-urlencoded"}


async def read(client: Client, record: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """A video's metadata, and the ETag that came with it."""
    response = await client.get(f"/api/videos/{record['id']}/metadata")
    assert response.status_code == 200
    body: dict[str, Any] = await response.get_json()
    return body, response.headers["ETag"]


async def put(
    client: Client, record: dict[str, Any], body: dict[str, Any], etag: str | None
) -> Response:
    headers = {} if etag is None else {"If-Match": etag}
    return await client.put(f"/api/videos/{record['id']}/metadata", json=body, headers=headers)


async def send_form(
    client: Client, path: str, base: Video | None = None, **changes: Any
) -> Response:
    """Send the form that was made from this state as a browser does: line ends are CR LF."""
    hidden = {} if base is None else fields_of(base)
    fields = {**FORM, **changes, **{f"base.{name}": value for name, value in hidden.items()}}
    lines = {
        name: value.replace("\n", "\r\n") if isinstance(value, str) else value
        for name, value in fields.items()
    }
    return await client.post(path, data=urlencode(lines, doseq=True), headers=URLENCODED)


def fields_of(video: Video) -> dict[str, Any]:
    """What the form of a video holds."""
    return {
        "title": video.title,
        "description": video.description,
        "categoryIds": [str(number) for number in video.category_ids],
        "tags": video.tags,
    }


async def html(response: Response, status: int = 200) -> str:
    assert response.status_code == status
    return str(await response.get_data(as_text=True))


async def test_put_changes_metadata_and_nothing_else_of_the_record(client: Client) -> None:
    record = await published(client)
    before = await (await client.get(f"/api/videos/{record['id']}")).get_json()
    body, etag = await read(client, record)
    assert body == {name: record[name] for name in BODY}
    path = f"/api/videos/{record['id']}/metadata"
    assert (await client.get(path, headers={"If-None-Match": etag})).status_code == 304
    response = await put(client, record, BODY, etag)
    assert response.status_code == 200
    assert await response.get_json() == BODY
    assert response.headers["ETag"] != etag
    assert (await client.get(path, headers={"If-None-Match": etag})).status_code == 200
    after = await (await client.get(f"/api/videos/{record['id']}")).get_json()
    assert after["updatedAt"] > before["updatedAt"]
    assert after == {**before, **BODY, "updatedAt": after["updatedAt"]}


async def test_put_over_another_version_changes_nothing_unless_the_editor_insists(
    client: Client,
) -> None:
    record = await published(client)
    _, etag = await read(client, record)
    theirs = {**BODY, "title": "Theirs"}
    assert (await put(client, record, theirs, etag)).status_code == 200
    for outdated in (etag, '"99"', 'W/"1"', "nonsense"):
        await problem(await put(client, record, BODY, outdated), 412, "metadata_changed")
    found, newest = await read(client, record)
    assert found == theirs
    assert (await put(client, record, BODY, newest)).status_code == 200
    assert (await put(client, record, theirs, "*")).status_code == 200


async def test_of_editors_at_the_same_moment_exactly_one_succeeds(client: Client) -> None:
    record = await published(client)
    _, etag = await read(client, record)
    bodies = [{**BODY, "title": f"Editor {number}"} for number in range(8)]
    answers = await asyncio.gather(*(put(client, record, body, etag) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7
    [winner] = [body for body, it in zip(bodies, answers, strict=True) if it.status_code == 200]
    assert (await read(client, record))[0] == winner


async def test_change_sent_again_after_a_lost_answer_is_no_conflict(client: Client) -> None:
    record = await published(client)
    _, etag = await read(client, record)
    first = await put(client, record, BODY, etag)
    again = await put(client, record, BODY, etag)
    assert again.status_code == 200
    assert again.headers["ETag"] == first.headers["ETag"]


async def test_metadata_keeps_the_rules_of_creation(client: Client) -> None:
    record = await published(client)
    body = {"title": " ", "description": "x" * 5_001, "categoryIds": [], "tags": 7}
    found = await faults(await put(client, record, body, "*"))
    assert set(found) == {"/title", "/description", "/categoryIds", "/tags"}
    body = {**BODY, "categoryIds": [2, 999]}
    assert set(await faults(await put(client, record, body, "*"))) == {"/categoryIds/1"}
    assert (await read(client, record))[0]["title"] == record["title"]


async def test_form_saves_and_leads_back_without_scripts(client: Client) -> None:
    video = await make_row(description="Old")
    page = await html(await client.get(f"/videos/{video.id}/edit"))
    assert f'action="/videos/{video.id}/edit"' in page
    assert 'name="base.description" value="Old"' in page
    text = "Line one\nLine two"
    response = await send_form(client, f"/videos/{video.id}/edit", video, description=text)
    assert response.status_code == 303
    assert response.headers["Location"] == f"/videos/{video.id}/edit?saved=details#save-button"
    found = await Video.get(id=video.id)
    assert (found.title, found.description, found.tags) == ("New", text, "a, b")
    assert found.category_ids == [2, 5]
    assert found.updated_at > video.updated_at


async def test_form_with_faults_says_so_beside_fields_and_keeps_what_was_typed(
    client: Client,
) -> None:
    video = await make_row()
    faulty = {"title": " ", "description": "Typed <text>", "categoryIds": [], "tags": "x" * 501}
    for path in ("edit", "edit/details"):
        sent = await send_form(client, f"/videos/{video.id}/{path}", video, **faulty)
        page = await html(sent, 422)
        assert re.search(r'id="categories-error"\s*>Choose at least one', page)
        assert 'id="title-error">Give a title; it may not be blank.' in page
        assert 'id="tags-error">Shorten this to at most 500 characters.' in page
        assert "Typed &lt;text&gt;</textarea>" in page
        assert 'value="' + "x" * 501 in page
        assert 'name="base.title" value="Video 1"' in page
    assert (await Video.get(id=video.id)).title == "Video 1"


async def test_changes_of_other_fields_by_two_editors_are_both_kept(client: Client) -> None:
    former = await make_row(description="Old", category_ids=[1], tags="a, b")
    address = f"/videos/{former.id}"
    theirs = {**fields_of(former), "title": "Theirs", "tags": "b, c"}
    assert (await send_form(client, f"{address}/edit/details", former, **theirs)).status_code == 200
    mine = {
        **fields_of(former),
        "description": "Mine",
        "tags": "a, b, d",
        "categoryIds": ["1", "2"],
    }
    page = await html(await send_form(client, f"{address}/edit/details", former, **mine))
    assert "change of the title and the tags was kept." in page
    found = await Video.get(id=former.id)
    assert (found.title, found.description, found.tags) == ("Theirs", "Mine", "b, c, d")
    assert found.category_ids == [1, 2]


async def test_page_without_scripts_says_what_of_someone_else_was_kept(client: Client) -> None:
    former = await make_row()
    theirs = {**fields_of(former), "title": "Theirs", "categoryIds": ["4"], "tags": "theirs"}
    await send_form(client, f"/videos/{former.id}/edit", former, **theirs)
    mine = {**fields_of(former), "description": "Mine"}
    response = await send_form(client, f"/videos/{former.id}/edit", former, **mine)
    assert response.status_code == 303
    address, _, _ = response.headers["Location"].partition("#")
    page = await html(await client.get(address))
    assert "change of the title, the categories and the tags was kept." in page
    assert "was kept" not in await html(await client.get(f"/videos/{former.id}/edit?kept=%3Cb%3E"))


async def test_same_field_changed_by_two_is_shown_from_both_and_not_saved(client: Client) -> None:
    former = await make_row(title="A day at the sea", description="Old", tags="a")
    address = f"/videos/{former.id}"
    theirs = {**fields_of(former), "title": "A night at the <b>sea", "tags": "b"}
    assert (await send_form(client, f"{address}/edit/details", former, **theirs)).status_code == 200
    mine = {**fields_of(former), "title": "A day by the sea", "description": "Mine"}
    for path in ("edit", "edit/details"):
        page = await html(await send_form(client, f"{address}/{path}", former, **mine), 409)
        assert "You and someone else have both changed the title<" in page
        sides = re.findall(r'id="title-\w+-value"\s+dir="auto">([^<]*)<', page)
        assert sides == ["A day by the sea", "A night at the &lt;b&gt;sea"]
        (title,) = re.findall(r'<input[^>]* name="title"[^>]*>', page)
        assert ' value="A day by the sea"' in title
        assert 'id="tags-conflict"' not in page
        # The rest is merged, and the form is made from what is recorded.
        assert "change of the tags is in the form, too" in page
        assert 'name="base.title" value="A night at the &lt;b&gt;sea"' in page
        assert ">\nMine</textarea>" in page
    assert (await Video.get(id=former.id)).description == "Old"


@pytest.mark.parametrize(("choice", "title"), [("mine", "Mine"), ("theirs", "Theirs")])
async def test_choice_of_a_conflict_is_saved_with_the_rest(
    client: Client, choice: str, title: str
) -> None:
    former = await make_row()
    theirs = {**fields_of(former), "title": "Theirs", "tags": "theirs"}
    await send_form(client, f"/videos/{former.id}/edit/details", former, **theirs)
    seen = await Video.get(id=former.id)
    mine = {**fields_of(seen), "title": "Mine", "description": "Mine", "choice.title": choice}
    page = await html(await send_form(client, f"/videos/{former.id}/edit/details", seen, **mine))
    assert "was kept" not in page
    found = await Video.get(id=former.id)
    assert (found.title, found.description, found.tags) == (title, "Mine", "theirs")


async def test_form_that_does_not_say_what_it_was_made_from_overwrites_nothing(
    client: Client,
) -> None:
    video = await make_row()
    await html(await send_form(client, f"/videos/{video.id}/edit"), 409)
    assert (await Video.get(id=video.id)).title == "Video 1"


async def test_page_links_categories_tags_and_addresses_of_the_description(client: Client) -> None:
    video = await make_row(
        **READY,
        category_ids=[3],
        tags="sea & sun, sea",
        description="See https://example.org/a?b=1&c=2. <script>",
    )
    page = await html(await client.get(f"/videos/{video.id}"))
    assert 'href="/?category=3"' in page
    assert 'href="/?tag=sea+%26+sun"' in page
    link = 'href="https://example.org/a?b=1&amp;c=2" rel="nofollow noopener ugc"'
    assert link in page
    assert "&lt;script&gt;" in page
