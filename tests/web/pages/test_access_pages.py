"""Who may see a video, on the pages: the panel, its form, the badges, and what the heads tell."""

import asyncio
import html
import re
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from account_pages import FORM_TYPE, answered, page, send
from front_end import STATIC, install_tools, run_node
from page_rows import READY, make_row
from quart import Quart
from signed_in import (
    OWN_PAGE,
    Sender,
    configure,
    make_account,
    signed_in,
)

from portal.database.account_models import Account
from portal.database.models import Video
from portal.database.states import Role, Visibility
from portal.web.server.response_cache import MAX_AGE_S, POPULAR

EVIL = "<script>alert(1)</script>\"'"
SITE = "https://blog.example.org"
# A fragment answers 410 where a page answers 404.
PANEL = "access/panel"
ROUTES = ("access", PANEL)
PRIVATE = {"visibility": Visibility.PRIVATE}
UNLISTED = {"visibility": Visibility.UNLISTED}
# Of videos: no two are alike.
_numbers = count(1)
pytestmark = pytest.mark.shared_app


@pytest.fixture
async def people(app: Quart) -> dict[str, Sender]:
    """Browsers: of the owner, an admin, two editors (`ed` publishes), a viewer, and nobody."""
    roles = {"ann": Role.OWNER, "ada": Role.ADMIN, "ed": Role.EDITOR}
    roles |= {"eve": Role.EDITOR, "vi": Role.VIEWER}
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


# Who is offered it.


async def test_panel_is_for_who_may_edit_the_video(people: dict[str, Sender]) -> None:
    video = await eds_video()
    for name, sender in people.items():
        text = await page(sender, f"/videos/{video.id}")
        assert (f'href="/videos/{video.id}/edit"' in text) is (name in ("ann", "ada", "ed")), name
        assert "Visible to:" not in text
    for name in ("ann", "ada", "ed"):
        assert 'id="access"' in await page(people[name], f"/videos/{video.id}/edit")


@pytest.mark.parametrize(
    ("name", "of_public", "of_private"),
    [("eve", 403, 404), ("vi", 403, 403), ("nobody", 401, 401)],
)
async def test_who_may_not_edit_a_video_is_refused_its_access(
    people: dict[str, Sender], name: str, of_public: int, of_private: int
) -> None:
    for values, status in (({}, of_public), (PRIVATE, of_private)):
        video = await eds_video(**values)
        before = await recorded(video)
        for route in ROUTES:
            path = f"/videos/{video.id}/{route}"
            is_gone = status == 404 and route == PANEL
            await send(people[name], path, form(video, "unlisted"), 410 if is_gone else status)
        assert await recorded(video) == before


@pytest.mark.parametrize("route", ROUTES)
async def test_access_of_an_unknown_video_is_not_found(
    people: dict[str, Sender], route: str
) -> None:
    for video_id in ("5d0e3b8a-2c41-4f6b-9a57-0c1d2e3f4a5b", "none"):
        path = f"/videos/{video_id}/{route}"
        fields = {"visibility": "public"}
        await send(people["ann"], path, fields, 410 if route == PANEL else 404)


# What it says.


@pytest.mark.parametrize(
    ("values", "name", "words"),
    [
        ({}, "ed", "everyone"),
        (UNLISTED, "ed", "everyone who has the address"),
        (PRIVATE, "ed", "you, admins and owners"),
        (PRIVATE, "ada", "who published it, admins and owners"),
        ({**PRIVATE, "signed_in_only": True}, "ed", "everyone with an account"),
    ],
)
async def test_section_says_who_sees_the_video(
    people: dict[str, Sender], values: dict[str, Any], name: str, words: str
) -> None:
    video = await eds_video(**values)
    text = await page(people[name], f"/videos/{video.id}/edit")
    assert state_of(text) == f"Visible to: {words}"


async def test_each_choice_says_who_sees_such_a_video(people: dict[str, Sender]) -> None:
    video = await eds_video()
    for name, private in (("ed", "You"), ("ann", "Who published it")):
        words = words_of(await page(people[name], f"/videos/{video.id}/edit"))
        assert "Public Everyone. It is listed in the library." in words
        assert "Unlisted Everyone who has the address." in words
        assert f"Private {private}, admins and owners. Everyone with an account, too" in words


async def test_panel_shows_what_is_recorded(people: dict[str, Sender]) -> None:
    sites = [SITE, "https://*.example.com"]
    video = await eds_video(**PRIVATE, signed_in_only=True, embed_origins=sites)
    for path in ("edit", "access/panel"):
        text = await page(people["ed"], f"/videos/{video.id}/{path}")
        assert chosen_in(text) == ["private", "signedInOnly"]
        assert sites_in(text) == "\n".join(sites)


@pytest.mark.parametrize(
    ("origins", "words"),
    [
        (("*",), "any site"),
        (("none",), "no other site"),
        (("https://a.example", "https://b.example"), "https://a.example, https://b.example"),
    ],
)
async def test_panel_names_the_setting_that_counts_for_no_sites(
    app: Quart, anyone: Sender, origins: tuple[str, ...], words: str
) -> None:
    configure(app, embed_origins=origins)
    text = await page(anyone, f"/videos/{(await eds_video()).id}/edit")
    assert f"Left empty: {words}, as the portal is set up." in words_of(text)


async def test_portal_without_accounts_says_that_private_is_not_yet(anyone: Sender) -> None:
    video = await eds_video(**PRIVATE)
    text = await page(anyone, f"/videos/{video.id}/edit")
    assert state_of(text) == "Visible to: everyone, until there are accounts"
    line = "This portal has no accounts yet: until then everyone sees private videos."
    assert line in words_of(text)
    await make_account("ann")


async def test_portal_with_accounts_says_nothing_of_that(people: dict[str, Sender]) -> None:
    text = await page(people["ed"], f"/videos/{(await eds_video(**PRIVATE)).id}/edit")
    assert "no accounts yet" not in text


# Saving.


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
    assert "Saved" in words_of(text)
    assert chosen_in(text) == ["private"]
    assert re.search(r'id="workshop-head"[^>]*hx-swap-oob="outerHTML".*>Private<', text, re.DOTALL)
    assert await recorded(video) == (Visibility.PRIVATE, False, [])


async def test_form_can_be_sent_again_after_it_was_saved(people: dict[str, Sender]) -> None:
    video = await eds_video()
    text = await send(people["ed"], *_panel(video), form(video, "private"), 200)
    again = {**base_in(text), "visibility": "unlisted"}
    await send(people["ed"], *_panel(video), again, 200)
    assert await recorded(video) == (Visibility.UNLISTED, False, [])


def _panel(video: Video) -> tuple[str]:
    return (f"/videos/{video.id}/access/panel",)


@pytest.mark.parametrize("visibility", ["public", "unlisted"])
async def test_box_for_everyone_signed_in_counts_for_private_alone(
    people: dict[str, Sender], visibility: str
) -> None:
    video = await eds_video(**PRIVATE, signed_in_only=True)
    sent = form(video, visibility, signedInOnly="on")
    await send(people["ed"], *_panel(video), sent, 200)
    assert await recorded(video) == (Visibility(visibility), False, [])


@pytest.mark.parametrize("change", ["private", "deleted", "deleted by the API"])
async def test_page_that_is_given_to_many_is_gone_at_once(
    people: dict[str, Sender], change: str
) -> None:
    video, nobody = await eds_video(), people["nobody"]
    path = f"/videos/{video.id}"
    for _ in range(POPULAR):
        await page(nobody, path)
    await asyncio.sleep(MAX_AGE_S)
    # From now on the answer to the first is given to all.
    for _ in range(POPULAR):
        await page(nobody, path)
    if change == "private":
        await send(people["ed"], *_panel(video), form(video, "private"), 200)
    elif change == "deleted":
        await send(people["ed"], f"{path}/delete", {}, 303)
    else:
        await people["ed"].post(f"/api{path}/deletion")
    await page(nobody, path, 404)


# Conflicts.


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("choice", ["mine", "theirs"])
async def test_what_both_changed_is_asked(
    people: dict[str, Sender], route: str, choice: str
) -> None:
    video = await eds_video()
    path = f"/videos/{video.id}/{route}"
    theirs = form(video, "private", signedInOnly="on", embedOrigins=SITE)
    await send(people["ann"], *_panel(video), theirs, 200)
    mine = form(video, "unlisted", embedOrigins="https://mine.example")
    text = await send(people["ed"], path, mine, 409)
    assert await recorded(video) == (Visibility.PRIVATE, True, [SITE])
    words = words_of(text)
    assert "You and someone else have both changed who can see it" in words
    assert "else’s change of the sites that may embed it is in the form, too." in words  # noqa: RUF001 - as shown
    assert "Mine Public: Unlisted: everyone who has the address" in words
    assert "Theirs Public: Private: everyone with an account" in words
    # What was chosen is still there, beside a question.
    assert chosen_in(text) == ["mine", "unlisted"]
    assert sites_in(text) == f"{SITE}\nhttps://mine.example"
    sent = {**base_in(text), "visibility": "unlisted", "embedOrigins": sites_in(text)}
    await _sent(people["ed"], video, route, {**sent, "choice.visibility": choice})
    kept = (Visibility.UNLISTED, False) if choice == "mine" else (Visibility.PRIVATE, True)
    assert await recorded(video) == (*kept, [SITE, "https://mine.example"])


@pytest.mark.parametrize("route", ROUTES)
async def test_what_only_one_of_two_changed_is_merged_in_silence(
    people: dict[str, Sender], route: str
) -> None:
    video = await eds_video()
    await send(people["ann"], *_panel(video), form(video, "private"), 200)
    mine = form(video, "public", embedOrigins=SITE)
    response = await _sent(people["ed"], video, route, mine)
    if route == PANEL:
        text = await answered(response, 200)
    else:
        address, _, place = response.headers["Location"].partition("#")
        assert place == "access"
        text = await page(people["ed"], address)
    assert await recorded(video) == (Visibility.PRIVATE, False, [SITE])
    section = words_of(text[text.index('id="access"') :])
    assert "Saved. Someone else’s change of who can see it was kept." in section  # noqa: RUF001 - as shown
    assert state_of(text) == "Visible to: you, admins and owners"


async def test_page_of_a_video_that_is_hidden_meanwhile_says_what_it_says_of_a_deleted_one(
    people: dict[str, Sender],
) -> None:
    hidden, deleted = await eds_video(**PRIVATE), await eds_video()
    await send(people["ed"], f"/videos/{deleted.id}/delete", {}, 303)
    for part in ("status", "remaining", "share", "related"):
        texts = [
            await page(people["vi"], f"/videos/{it.id}/{part}", 410) for it in (hidden, deleted)
        ]
        assert texts[0] == texts[1]
        assert "This video is no longer available" in texts[0]
    stages = [await page(people["vi"], f"/embed/{it.id}/stage", 410) for it in (hidden, deleted)]
    assert stages[0] == stages[1]


async def test_same_change_sent_twice_is_no_conflict(people: dict[str, Sender]) -> None:
    video = await eds_video()
    for _ in range(2):
        await send(people["ed"], *_panel(video), form(video, "private"), 200)


async def test_form_that_was_made_from_nothing_overwrites_nothing(
    people: dict[str, Sender],
) -> None:
    video = await eds_video()
    await send(people["ed"], *_panel(video), {"visibility": "private"}, 409)
    assert await recorded(video) == (Visibility.PUBLIC, False, [])


# What can't be saved.


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("fields", "field", "fault"),
    [
        ({"visibility": ""}, "visibility", "Choose 'public', 'unlisted' or 'private'"),
        ({"visibility": EVIL}, "visibility", "Choose 'public', 'unlisted' or 'private'"),
        (
            {"visibility": "private", "embedOrigins": f"{SITE}\n{SITE}/film?a=1"},
            "embed-origins",
            f"“{SITE}/film?a=1”: Give a site like https://blog.example.org",
        ),
        (
            {"visibility": "private", "embedOrigins": EVIL},
            "embed-origins",
            f"“{EVIL}”: Give a site like",
        ),
        (
            {
                "visibility": "private",
                "embedOrigins": "\n".join(f"{SITE}:{n}" for n in range(1, 22)),
            },
            "embed-origins",
            "Give at most 20",
        ),
    ],
    ids=["none", "unknown", "path", "evil", "many"],
)
async def test_fault_is_told_at_its_field_and_nothing_is_saved(
    people: dict[str, Sender], route: str, fields: dict[str, str], field: str, fault: str
) -> None:
    video = await eds_video()
    sent = {**form(video, ""), **fields}
    text = await send(people["ed"], f"/videos/{video.id}/{route}", sent, 422)
    assert fault_in(text, field).startswith(fault)
    others = {"visibility", "embed-origins"} - {field}
    assert [fault_in(text, it) for it in others] == [""]
    assert await recorded(video) == (Visibility.PUBLIC, False, [])
    assert sites_in(text) == fields.get("embedOrigins", "")
    known = fields["visibility"] == "private"
    assert chosen_in(text) == (["private"] if known else [])
    assert "<script>alert" not in text
    # Who repairs the form has not read another version meanwhile.
    assert base_in(text) == base(video)


# The page around it.


async def test_private_video_has_no_address_for_others_to_play(people: dict[str, Sender]) -> None:
    for values, is_private in ((PRIVATE, True), (UNLISTED, False), ({}, False)):
        video = await eds_video(**values)
        for path in ("", "/share"):
            text = await page(people["ed"], f"/videos/{video.id}{path}")
            share = text[
                text.index('id="share"') : text.index("</details>", text.index('id="share"'))
            ]
            assert 'id="page-address"' in share
            assert ('id="stream-address"' in share) is not is_private
            assert ('id="embed-code"' in share) is not is_private
            assert ("playback links are for that" in share) is is_private


@pytest.mark.parametrize(
    ("values", "badge"), [({}, ""), (UNLISTED, "Unlisted"), (PRIVATE, "Private")]
)
async def test_video_that_not_everyone_is_shown_says_so_in_words(
    people: dict[str, Sender], values: dict[str, Any], badge: str
) -> None:
    video = await eds_video(**values)
    for path in ("/", f"/videos/{video.id}", f"/videos/{video.id}/edit"):
        text = await page(people["ed"], path)
        found = re.findall(r"badge--visibility[^>]*>([^<]*)<", text)
        assert found == ([badge] if badge else []), path
    progress = await page(people["ed"], f"/library/progress?id={video.id}")
    assert ("badge--visibility" in progress) is bool(badge)


async def test_card_of_a_hidden_video_is_there_for_who_may_see_it(
    people: dict[str, Sender],
) -> None:
    await eds_video(title="Kept private", **PRIVATE)
    await eds_video(title="Without a listing", **UNLISTED)
    await eds_video(title="For colleagues", **PRIVATE, signed_in_only=True)
    seen = {
        "ed": {"Kept private", "Without a listing", "For colleagues"},
        "ann": {"Kept private", "Without a listing", "For colleagues"},
        "ada": {"Kept private", "Without a listing", "For colleagues"},
        "eve": {"For colleagues"},
        "vi": {"For colleagues"},
        "nobody": set(),
    }
    for name, titles in seen.items():
        text = await page(people[name], "/")
        assert set(re.findall(r'class="card__link" href="[^"]+">([^<]*)<', text)) == titles, name
        assert text.count("badge--visibility") == len(titles), name


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


async def test_frame_of_a_private_video_opens_by_the_session(people: dict[str, Sender]) -> None:
    video = await eds_video(title="A film", **PRIVATE)
    for name, sender in people.items():
        may_see = name in ("ann", "ada", "ed")
        for path, refusal in ((f"/embed/{video.id}", 404), (f"/embed/{video.id}/stage", 410)):
            text = await page(sender, path, 200 if may_see else refusal)
            assert ("A film" in text) is may_see, name
            assert (f"/hls/{video.id}/1/master.m3u8" in text) is may_see
            assert 'rel="canonical"' not in text
    shared = await eds_video(title="Everyone's")
    assert 'rel="canonical"' in await page(people["nobody"], f"/embed/{shared.id}")


# The upload page.


@pytest.mark.parametrize("default", ["public", "unlisted", "private"])
async def test_upload_form_begins_with_the_portals_setting(
    app: Quart, anyone: Sender, default: str
) -> None:
    configure(app, default_visibility=default)
    text = await page(anyone, "/upload")
    assert re.findall(r'<option value="(\w+)"\s+selected', text) == [default]
    assert f'data-default-visibility="{default}"' in text
    assert "Private: only you and admins (needs accounts)" in text


async def test_upload_form_says_who_sees_a_private_video(people: dict[str, Sender]) -> None:
    for name in ("ed", "ann"):
        text = await page(people[name], "/upload")
        assert "Public: everyone<" in text
        assert "Unlisted: everyone who has the address<" in text
        assert "Private: you, admins and owners<" in text


# All of it.


async def test_pages_of_access_are_valid_html(people: dict[str, Sender], tmp_path: Path) -> None:
    video = await eds_video(title=EVIL, **PRIVATE, signed_in_only=True, embed_origins=[SITE])
    address, ed = f"/videos/{video.id}", people["ed"]
    texts = {
        "own": await page(ed, "/videos"),
        "video": await page(ed, address),
        "workshop": await page(ed, f"{address}/edit"),
        "faults": await send(ed, f"{address}/access", form(video, EVIL, embedOrigins=EVIL)),
        "conflict": await send(ed, f"{address}/access", {"visibility": "public"}, 409),
        "upload": await page(ed, "/upload"),
        "embed": await page(ed, f"/embed/{video.id}"),
        "own-empty": await page(people["eve"], "/videos"),
    }
    for name, text in texts.items():
        assert "<script>alert" not in text, name
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
    program = install_tools() / "html-validate" / "bin" / "html-validate.mjs"
    files = [str(tmp_path / f"{name}.html") for name in texts]
    run_node(
        str(program), "--config", str(STATIC / "htmlvalidate.json"), "--max-warnings", "0", *files
    )
