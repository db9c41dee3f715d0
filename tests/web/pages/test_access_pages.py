"""Who may see a video, on the pages: the panel, its form, the badges, and what the heads tell."""

import html
import re
from itertools import count
from typing import Any
from urllib.parse import urlencode

import pytest
from account_pages import FORM_TYPE, answered, page, send
from page_rows import READY, make_row
from quart import Quart
from signed_in import OWN_PAGE, Sender, configure, make_account, signed_in

from portal.database.account_models import Account, Role
from portal.database.models import Video, Visibility

EVIL = "<script>alert(1)</script>\"'"
SITE = "https://blog.example.org"
PANEL = "access/panel"
PRIVATE = {"visibility": Visibility.PRIVATE}
UNLISTED = {"visibility": Visibility.UNLISTED}
# Of videos: no two are alike.
_numbers = count(1)
pytestmark = pytest.mark.shared_app


@pytest.fixture
async def people(app: Quart) -> dict[str, Sender]:
    """Browsers: of the owner, an editor who publishes, a viewer, and nobody."""
    roles = {"ann": Role.OWNER, "ed": Role.EDITOR, "vi": Role.VIEWER}
    found = {name: await signed_in(app, await make_account(name, it)) for name, it in roles.items()}
    return {**found, "nobody": Sender(app, OWN_PAGE)}


async def eds_video(**values: Any) -> Video:
    """A video that can be played, of the editor `ed` if there is one."""
    ed = await Account.get_or_none(email="ed@example.org")
    return await make_row(next(_numbers), **{**READY, "owner_id": ed and ed.id, **values})


def form(video: Video, visibility: str, **more: Any) -> dict[str, Any]:
    """The form as it was made from what is recorded, filled in."""
    return {**base(video), "visibility": visibility, **more}


def base(video: Video) -> dict[str, str]:
    """What the form says that it was made from."""
    made_from = {"visibility": str(video.visibility), "embedOrigins": " ".join(video.embed_origins)}
    made_from |= {"signedInOnly": "on"} if video.signed_in_only else {}
    return {f"base.{name}": value for name, value in made_from.items()}


def base_in(text: str) -> dict[str, str]:
    """What a form that was sent back says that it was made from."""
    section = text[text.index('id="access"') :]
    tags = re.findall(r'<input type="hidden"\s+name="base.[^>]*>', section)
    return {_attribute(it, "name"): html.unescape(_attribute(it, "value")) for it in tags}


async def recorded(video: Video) -> tuple[Visibility, bool, list[str]]:
    now = await Video.get(id=video.id)
    return now.visibility, now.signed_in_only, now.embed_origins


def words_of(text: str) -> str:
    """What a page or a fragment says, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def state_of(text: str) -> str:
    """What the section says of the video as it is."""
    found = re.search(r"<p[^>]*data-state>(.*?)</p>", text, re.DOTALL)
    assert found is not None
    return words_of(found[1])


def chosen_in(text: str) -> list[str]:
    """The choices of the form that are made."""
    section = text[text.index('id="access"') :]
    tags = re.findall(r"<input\s+type=\"(?:radio|checkbox)\"[^>]*>", section)
    made = [it for it in tags if "checked" in it]
    return [_attribute(it, "value") or _attribute(it, "name") for it in made]


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'{name}="([^"]*)"', tag)
    return found[1] if found else ""


def sites_in(text: str) -> str:
    found = re.search(r'<textarea[^>]*name="embedOrigins"[^>]*>\n(.*?)</textarea>', text, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


def fault_in(text: str, field: str) -> str:
    found = re.search(rf'id="{field}-error">([^<]*)<', text)
    assert found is not None
    return html.unescape(found[1])


async def test_portal_without_accounts_says_that_private_is_not_yet(anyone: Sender) -> None:
    video = await eds_video(**PRIVATE)
    text = await page(anyone, f"/videos/{video.id}/edit")
    assert state_of(text) == "Visible to: everyone, until there are accounts"


async def test_form_without_scripts_saves_and_leads_back(people: dict[str, Sender]) -> None:
    video = await eds_video()
    sent = form(video, "private", signedInOnly="on", embedOrigins=f"{SITE}\r\n\r\n {SITE} ")
    response = await _sent(people["ed"], video, "access", sent)
    assert response.status_code == 303
    assert response.headers["Location"] == f"/videos/{video.id}/edit?saved=access#access"
    text = await page(people["ed"], f"/videos/{video.id}/edit?saved=access")
    assert words_of(text).count("Saved.") == 1
    assert await recorded(video) == (Visibility.PRIVATE, True, [SITE])
    await page(people["vi"], f"/videos/{video.id}")
    await page(people["nobody"], f"/videos/{video.id}", 404)


async def _sent(sender: Sender, video: Video, route: str, fields: dict[str, Any]) -> Any:
    data, headers = urlencode(fields, doseq=True), {"Content-Type": FORM_TYPE}
    return await sender.post(f"/videos/{video.id}/{route}", data=data, headers=headers)


async def test_panel_saves_and_brings_the_head_of_the_page_along(people: dict[str, Sender]) -> None:
    video = await eds_video()
    response = await _sent(people["ann"], video, "access/panel", form(video, "private"))
    text = await answered(response, 200)
    assert state_of(text) == "Visible to: who published it, admins and owners"
    assert re.search(r'<section id="access"[^>]*\bdata-saved\b', text)
    assert chosen_in(text) == ["private"]
    assert re.search(r'id="workshop-head"[^>]*hx-swap-oob="outerHTML".*>Private<', text, re.DOTALL)


@pytest.mark.parametrize(("route", "choice"), [(PANEL, "mine"), ("access", "theirs")])
async def test_what_both_changed_is_asked(
    people: dict[str, Sender], route: str, choice: str
) -> None:
    video = await eds_video()
    path = f"/videos/{video.id}/{route}"
    theirs = form(video, "private", signedInOnly="on", embedOrigins=SITE)
    await send(people["ann"], f"/videos/{video.id}/{PANEL}", theirs, 200)
    mine = form(video, "unlisted", embedOrigins="https://mine.example")
    text = await send(people["ed"], path, mine, 409)
    assert await recorded(video) == (Visibility.PRIVATE, True, [SITE])
    words = words_of(text)
    assert "You and someone else have both changed who can see it" in words
    assert "else’s change of the sites that may embed it is in the form, too." in words  # noqa: RUF001 - as shown
    assert "Mine Unlisted: everyone who has the address" in words
    assert "Theirs Private: everyone with an account" in words
    # What was chosen is still there, beside a question.
    assert chosen_in(text) == ["mine", "unlisted"]
    assert sites_in(text) == f"{SITE}\nhttps://mine.example"
    sent = {**base_in(text), "visibility": "unlisted", "embedOrigins": sites_in(text)}
    await _sent(people["ed"], video, route, {**sent, "choice.visibility": choice})
    kept = (Visibility.UNLISTED, False) if choice == "mine" else (Visibility.PRIVATE, True)
    assert await recorded(video) == (*kept, [SITE, "https://mine.example"])


@pytest.mark.parametrize(
    ("route", "fields", "field", "fault"),
    [
        (PANEL, {"visibility": EVIL}, "visibility", "Choose 'public', 'unlisted' or 'private'"),
        (
            "access",
            {"visibility": "private", "embedOrigins": f"{SITE}\n{EVIL}"},
            "embed-origins",
            f"“{EVIL}”: Give a site like",
        ),
    ],
    ids=["visibility", "site"],
)
async def test_fault_is_told_at_its_field_and_nothing_is_saved(
    people: dict[str, Sender], route: str, fields: dict[str, str], field: str, fault: str
) -> None:
    video = await eds_video()
    sent = {**form(video, ""), **fields}
    text = await send(people["ed"], f"/videos/{video.id}/{route}", sent, 422)
    assert fault_in(text, field).startswith(fault)
    assert [fault_in(text, it) for it in {"visibility", "embed-origins"} - {field}] == [""]
    assert await recorded(video) == (Visibility.PUBLIC, False, [])
    assert sites_in(text) == fields.get("embedOrigins", "")
    assert chosen_in(text) == (["private"] if fields["visibility"] == "private" else [])
    assert "<script>alert" not in text
    # Who repairs the form has not read another version meanwhile.
    assert base_in(text) == base(video)


async def test_private_video_has_no_address_for_others_to_play(people: dict[str, Sender]) -> None:
    for values, is_private in ((PRIVATE, True), (UNLISTED, False), ({}, False)):
        video = await eds_video(**values)
        for path in ("", "/share"):
            text = await page(people["ed"], f"/videos/{video.id}{path}")
            share = text.partition('id="share"')[2].partition("</details>")[0]
            assert 'id="page-address"' in share
            assert ('id="stream-address"' in share) is not is_private
            assert ('id="embed-code"' in share) is not is_private
            assert ("playback links are for that" in share) is is_private


async def test_head_tells_others_of_a_video_as_far_as_they_may_see_it(
    people: dict[str, Sender],
) -> None:
    signs = {'rel="canonical"': 1, "og:title": 1, "og:video": 1, "json+oembed": 1, "twitter:": 1}
    for values, is_told, is_indexed in (
        ({}, True, True),
        (UNLISTED, True, False),
        (PRIVATE, False, False),
    ):
        video = await eds_video(title="A film", **values)
        text = await page(people["ed"], f"/videos/{video.id}")
        head = text[: text.index("</head>")]
        assert {sign: 1 for sign in signs if sign in head} == (signs if is_told else {})
        assert ('<meta name="robots" content="noindex">' in head) is not is_indexed
        assert "<title>A film" in head


@pytest.mark.parametrize("default", ["public", "private"])
async def test_upload_form_begins_with_the_portals_setting(
    app: Quart, anyone: Sender, default: str
) -> None:
    configure(app, default_visibility=default)
    text = await page(anyone, "/upload")
    assert re.findall(r'<option value="(\w+)"\s+selected', text) == [default]
    assert f'data-default-visibility="{default}"' in text
    assert "Private: only you and admins (needs accounts)" in text
