"""Audience of a video on its pages: the form in the workshop, and the tags in the head."""

import html
import re
from typing import Any
from urllib.parse import parse_qsl

import pytest
from page_texts import page, send, words_of
from playable_videos import ready_video
from quart import Quart
from signed_in import Sender, configure, make_account, send_fields, signed_in

from portal.database.account_models import Account, Role
from portal.database.models import Video, Visibility

EVIL = "<script>alert(1)</script>\"'"
SITE = "https://blog.example.org"
MINE = "https://mine.example"
PANEL = "access/panel"
PRIVATE = {"visibility": Visibility.PRIVATE}
UNLISTED = {"visibility": Visibility.UNLISTED}
pytestmark = pytest.mark.shared_app


def form(video: Video, visibility: str, **more: Any) -> dict[str, Any]:
    """The form as it was made from what is recorded, filled in."""
    base = {"base.visibility": video.visibility, "base.embedOrigins": " ".join(video.embed_origins)}
    base |= {"base.signedInOnly": "on"} if video.signed_in_only else {}
    return {**base, "visibility": visibility, **more}


async def recorded(video: Video) -> tuple[Visibility, bool, list[str]]:
    now = await Video.get(id=video.id)
    return now.visibility, now.signed_in_only, now.embed_origins


def sites_in(text: str) -> str:
    [match] = re.findall(r'<textarea[^>]*name="embedOrigins"[^>]*>\n(.*?)</textarea>', text, re.S)
    return html.unescape(match)


def fault_in(text: str, field: str) -> str:
    [match] = re.findall(rf'id="{field}-error">([^<]*)<', text)
    return html.unescape(match)


async def test_portal_without_accounts_warns_that_private_videos_are_visible(
    app: Quart, anyone: Sender
) -> None:
    configure(app, default_visibility="private")
    video = await ready_video(**PRIVATE)
    text = words_of(await page(anyone, f"/videos/{video.id}/edit"))
    assert "Visible to: everyone, because this portal has no accounts yet" in text
    upload = await page(anyone, "/upload")
    assert re.findall(r'<option value="(\w+)"\s+selected', upload) == ["private"]
    assert "Private: only you and admins (needs accounts)" in upload


async def test_form_without_scripts_saves_and_redirects_back(
    editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith)
    fields = form(video, "private", signedInOnly="on", embedOrigins=f"{SITE}\r\n\r\n {SITE} ")
    response = await send_fields(editor, f"/videos/{video.id}/access", **fields)
    assert response.status_code == 303
    assert response.headers["Location"] == f"/videos/{video.id}/edit?saved=access#access"
    text = await page(editor, f"/videos/{video.id}/edit?saved=access")
    assert words_of(text).count("Saved.") == 1
    assert await recorded(video) == (Visibility.PRIVATE, True, [SITE])


async def test_panel_saves_and_updates_the_head_of_the_page(edith: Account, owner: Sender) -> None:
    video = await ready_video(edith)
    text = await send(owner, f"/videos/{video.id}/{PANEL}", form(video, "private"), 200)
    assert "Visible to: the person who published it, admins and owners" in words_of(text)
    assert re.search(r'<section id="access"[^>]*\bdata-saved\b', text)
    assert re.search(r'id="workshop-head"[^>]*hx-swap-oob="outerHTML".*>Private<', text, re.S)


@pytest.mark.parametrize(("route", "choice"), [(PANEL, "mine"), ("access", "theirs")])
async def test_conflicting_changes_are_shown_for_a_choice(
    app: Quart, olga: Account, editor: Sender, edith: Account, route: str, choice: str
) -> None:
    video = await ready_video(edith)
    path = f"/videos/{video.id}/{route}"
    other_form = form(video, "private", signedInOnly="on", embedOrigins=SITE)
    await send(await signed_in(app, olga), f"/videos/{video.id}/{PANEL}", other_form, 200)
    text = await send(editor, path, form(video, "unlisted", embedOrigins=MINE), 409)
    assert await recorded(video) == (Visibility.PRIVATE, True, [SITE])
    words = words_of(text)
    assert "You and someone else both changed the visibility" in words
    assert "Someone else also changed the sites that can embed this video." in words
    assert "Your version Unlisted: anyone with the link" in words
    assert "Their version Private: everyone with an account" in words
    assert sites_in(text) == f"{SITE}\n{MINE}"
    now = form(await Video.get(id=video.id), "unlisted", embedOrigins=sites_in(text))
    for name, value in now.items():
        if name.startswith("base."):
            assert re.search(rf'name="{re.escape(name)}"\s+value="{value}"', text), name
    await send_fields(editor, path, **now, **{"choice.visibility": choice})
    expected = (Visibility.UNLISTED, False) if choice == "mine" else (Visibility.PRIVATE, True)
    assert await recorded(video) == (*expected, [SITE, MINE])


@pytest.mark.parametrize(
    ("route", "fields", "field", "fault"),
    [
        (PANEL, f"visibility={EVIL}", "visibility", "Choose 'public', 'unlisted' or 'private'"),
        (
            "access",
            f"visibility=private&embedOrigins={SITE} {EVIL}",
            "embed-origins",
            f"“{EVIL}”: Give a site like",
        ),
    ],
    ids=["visibility", "site"],
)
async def test_fault_is_shown_at_its_field_and_nothing_is_saved(
    editor: Sender, edith: Account, route: str, fields: str, field: str, fault: str
) -> None:
    video = await ready_video(edith)
    body = {**form(video, ""), **dict(parse_qsl(fields))}
    text = await send(editor, f"/videos/{video.id}/{route}", body, 422)
    assert fault_in(text, field).startswith(fault)
    assert [fault_in(text, name) for name in {"visibility", "embed-origins"} - {field}] == [""]
    assert await recorded(video) == (Visibility.PUBLIC, False, [])
    assert sites_in(text).split() == body.get("embedOrigins", "").split()
    assert "<script>alert" not in text


async def test_page_describes_a_video_to_other_sites_only_if_they_may_see_it(
    editor: Sender, edith: Account
) -> None:
    signs = {'rel="canonical"', "og:title", "og:video", "json+oembed", "twitter:"}
    for values, is_private, is_indexed in (
        ({}, False, True),
        (UNLISTED, False, False),
        (PRIVATE, True, False),
    ):
        video = await ready_video(edith, **values)
        text = await page(editor, f"/videos/{video.id}")
        head = text[: text.index("</head>")]
        assert {sign for sign in signs if sign in head} == (set() if is_private else signs)
        assert ('<meta name="robots" content="noindex">' in head) is not is_indexed
        for part in (text, await page(editor, f"/videos/{video.id}/share")):
            share = part.partition('id="share"')[2].partition("</details>")[0]
            assert 'id="page-address"' in share
            assert ('id="stream-address"' in share) is not is_private
            assert ('id="embed-code"' in share) is not is_private
            assert ("create a playback link" in words_of(share)) is is_private


async def test_share_begins_with_the_page_and_names_the_stream_to_editors_alone(
    app: Quart, edith: Account
) -> None:
    video = await ready_video(edith)
    viewer = await make_account("vic", Role.VIEWER)
    ids = {}
    for account in (edith, viewer):
        text = await page(await signed_in(app, account), f"/videos/{video.id}")
        ids[account.id] = re.findall(r'id="([a-z-]+-(?:address|code))"', text)
    own = ["page-address", "embed-code"]
    of_clip = ["clip-page-address", "clip-embed-code"]
    assert ids[viewer.id] == own + of_clip
    assert ids[edith.id] == [*own, "stream-address", *of_clip, "clip-stream-address"]
