"""Editors change what is said of a video, and never overwrite each other without knowing."""

import re
from typing import Any

import pytest
from api_client import Client
from page_rows import READY, make_row
from page_texts import page, shown
from quart import Response
from signed_in import send_fields

from portal.database.models import Video

pytestmark = pytest.mark.shared_app


def fields_of(video: Video) -> dict[str, Any]:
    texts = {"title": video.title, "description": video.description, "tags": video.tags}
    return {**texts, "categoryIds": [str(number) for number in video.category_ids]}


async def send_form(client: Client, path: str, base: Video | None, **fields: Any) -> Response:
    """Send the form that was made from this state as a browser does: line ends are CR LF."""
    hidden = {} if base is None else fields_of(base)
    form = {**hidden, **fields, **{f"base.{name}": value for name, value in hidden.items()}}
    lines = {
        name: value.replace("\n", "\r\n") if isinstance(value, str) else value
        for name, value in form.items()
    }
    return await send_fields(client, path, **lines)


async def test_form_saves_and_leads_back_without_scripts(client: Client) -> None:
    video = await make_row(description="Old")
    address = f"/videos/{video.id}/edit"
    form = await page(client, address)
    assert f'action="{address}"' in form
    assert 'name="base.description" value="Old"' in form
    text = "Line one\nLine two"
    changes = {"title": "New", "description": text, "categoryIds": ["2", "5"], "tags": "a, b"}
    response = await send_form(client, address, video, **changes)
    assert response.status_code == 303
    assert response.headers["Location"] == f"{address}?saved=details#save-button"
    saved = await Video.get(id=video.id)
    assert fields_of(saved) == changes
    assert saved.updated_at > video.updated_at
    # A form without its base overwrites nothing.
    await shown(await send_form(client, address, None, **{**changes, "title": "Newer"}), 409)
    assert (await Video.get(id=video.id)).title == "New"


async def test_form_with_faults_says_so_beside_fields_and_keeps_what_was_typed(
    client: Client,
) -> None:
    video = await make_row()
    faulty = {"title": " ", "description": "Typed <text>", "categoryIds": [], "tags": "x" * 501}
    for path in ("edit", "edit/details"):
        response = await send_form(client, f"/videos/{video.id}/{path}", video, **faulty)
        text = await shown(response, 422)
        for field in ("categories", "title", "tags"):
            assert re.search(rf'id="{field}-error"\s*>\w', text), field
        assert "Typed &lt;text&gt;</textarea>" in text
        assert 'value="' + "x" * 501 in text
        assert 'name="base.title" value="Video 1"' in text
    assert (await Video.get(id=video.id)).title == "Video 1"


@pytest.mark.parametrize("path", ["edit", "edit/details"])
async def test_changes_of_other_fields_by_two_editors_are_both_kept_and_told(
    client: Client, path: str
) -> None:
    former = await make_row(description="Old", category_ids=[1], tags="a, b")
    address = f"/videos/{former.id}/{path}"
    theirs = {"title": "Theirs", "tags": "b, c"}
    mine = {"description": "Mine", "tags": "a, b, d"}
    await send_form(client, address, former, **theirs)
    response = await send_form(client, address, former, **mine)
    if path == "edit":
        assert response.status_code == 303
        response = await client.get(response.headers["Location"].partition("#")[0])
    assert "change to the title and the tags was kept." in await shown(response)
    saved = await Video.get(id=former.id)
    assert (saved.title, saved.description, saved.tags) == ("Theirs", "Mine", "b, c, d")
    assert "was kept" not in await page(client, f"/videos/{former.id}/edit?kept=%3Cb%3E")


@pytest.mark.parametrize("choice", ["mine", "theirs"])
async def test_same_field_changed_by_two_is_shown_from_both_and_saved_as_chosen(
    client: Client, choice: str
) -> None:
    former = await make_row(title="A day at the sea", description="Old", tags="a")
    address = f"/videos/{former.id}/edit/details"
    titles = {"mine": "A day by the sea", "theirs": "A night at the <b>sea"}
    theirs = {"title": titles["theirs"], "tags": "b"}
    assert (await send_form(client, address, former, **theirs)).status_code == 200
    mine = {"title": titles["mine"], "description": "Mine"}
    for path in (f"/videos/{former.id}/edit", address):
        text = await shown(await send_form(client, path, former, **mine), 409)
        assert "You and someone else both changed the title<" in text
        sides = re.findall(r'id="title-\w+-value"\s+dir="auto">([^<]*)<', text)
        assert sides == ["A day by the sea", "A night at the &lt;b&gt;sea"]
        (title,) = re.findall(r'<input[^>]* name="title"[^>]*>', text)
        assert ' value="A day by the sea"' in title
        assert 'id="tags-conflict"' not in text
        # The rest is merged, and the form is made from what is recorded.
        assert "Someone else also changed the tags. Their change is in the form." in text
        assert 'name="base.title" value="A night at the &lt;b&gt;sea"' in text
        assert ">\nMine</textarea>" in text
    unchanged = await Video.get(id=former.id)
    assert unchanged.description == "Old"
    text = await shown(
        await send_form(client, address, unchanged, **mine, **{"choice.title": choice})
    )
    assert "was kept" not in text
    saved = await Video.get(id=former.id)
    assert (saved.title, saved.description, saved.tags) == (titles[choice], "Mine", "b")


async def test_page_links_categories_tags_and_addresses_of_the_description(client: Client) -> None:
    texts = {"tags": "sea & sun, sea", "description": "See https://example.org/a?b=1&c=2."}
    video = await make_row(**READY, category_ids=[3], **texts)
    text = await page(client, f"/videos/{video.id}")
    addresses = ("/?category=3", "/?tag=sea+%26+sun", "https://example.org/a?b=1&amp;c=2")
    assert all(f'href="{address}"' in text for address in addresses)


async def test_tags_that_were_typed_are_stored_with_single_spaces(client: Client) -> None:
    video = await make_row(tags="a  b")
    form = {"base.title": video.title, "base.tags": "a  b", "title": video.title}
    form |= {"base.categoryIds": "1", "categoryIds": "1", "base.description": "", "description": ""}
    for typed, stored in (("a  b", "a  b"), (" deep   sea,  sun ", "deep sea, sun")):
        response = await client.post(f"/videos/{video.id}/edit", form={**form, "tags": typed})
        assert response.status_code == 303
        assert (await Video.get(id=video.id)).tags == stored
