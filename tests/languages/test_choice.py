"""The language of a response: who chooses it, and what caches learn of it."""

import re
from dataclasses import replace
from uuid import uuid4

import pytest
from quart import Quart
from signed_in import OWN_PAGE, Sender, send_fields, signed_in, text_of

from portal.config import Config
from portal.database.account_models import Account
from portal.web.app import create_app

GERMAN = {"Accept-Language": "de-CH,de;q=0.9,en;q=0.8"}


async def language_of(sender: Sender, path: str = "/", **headers: str) -> str:
    """Return the language and the direction of a page."""
    text = await text_of(await sender.get(path, headers={**headers}))
    match = re.search(r'<html lang="([^"]*)"\s+dir="([^"]*)"', text)
    assert match is not None, text[:500]
    return f"{match[1]} {match[2]}"


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en ltr"),
        ("de-CH,de;q=0.9,en;q=0.8", "de ltr"),
        ("pt-BR,pt;q=0.9,fr;q=0.5,en;q=0.3", "fr ltr"),
        ("en-GB,de;q=0.9", "en ltr"),
        ("ja", "en ltr"),
        ("de;q=0, it;q=0.1", "it ltr"),
        ("*", "en ltr"),
        # Languages of tests are offered to nobody.
        ("xx, es;q=0.5", "es ltr"),
        ("../de, ;;q=x", "en ltr"),
    ],
)
async def test_browsers_languages_are_read_in_their_order(
    client: Sender, accepted: str, language: str
) -> None:
    headers = {"Accept-Language": accepted} if accepted else {}
    assert await language_of(client, **headers) == language


async def test_choice_counts_more_than_the_browser(client: Sender) -> None:
    page = {"Referer": "https://videos.example.org/upload?x=1&lang=it"}
    headers = {**OWN_PAGE, **GERMAN, **page}
    response = await client.post("/language", form={"language": "fr"}, headers=headers)
    assert (response.status_code, response.headers["Location"]) == (303, "/upload?x=1")
    assert await language_of(client, **GERMAN) == "fr ltr"
    # An address and a page's script count more.
    assert await language_of(client, "/?lang=es", **GERMAN) == "es ltr"
    assert await language_of(client, **{"Portal-Language": "it"}) == "it ltr"
    assert await language_of(client, "/?lang=xr") == "xr rtl"


@pytest.mark.parametrize("language", ["xx", "pt", "", "../../de"])
async def test_language_that_is_not_offered_is_ignored(client: Sender, language: str) -> None:
    headers = {**OWN_PAGE, "Referer": "https://example.org//example.com/"}
    response = await client.post("/language", form={"language": language}, headers=headers)
    assert response.headers["Location"] == "/"
    assert "Set-Cookie" not in response.headers
    assert await language_of(client, f"/?lang={'pt' if language == 'xx' else language}") == "en ltr"
    assert await language_of(client, Cookie=f"portal_language={language}") == "en ltr"


async def test_account_keeps_the_choice_for_other_browsers(app: Quart, olga: Account) -> None:
    first, second = await signed_in(app, olga), await signed_in(app, olga)
    await send_fields(first, "/language", language="it")
    assert await language_of(second, **GERMAN) == "it ltr"
    # Nobody else's language changes.
    assert await language_of(app.test_client(), **GERMAN) == "de ltr"


async def test_site_has_a_language_of_its_own(config: Config) -> None:
    app = create_app(replace(config, site_language="de"))
    async with app.test_app():
        assert await language_of(app.test_client()) == "de ltr"
        assert await language_of(app.test_client(), **{"Accept-Language": "es"}) == "es ltr"


async def test_caches_learn_what_a_response_depends_on(client: Sender) -> None:
    page = await client.get("/", headers=GERMAN)
    assert "Accept-Language" in page.headers["Vary"]
    answer = await client.get("/api/categories", headers=GERMAN)
    assert "Accept-Language" not in answer.headers.get("Vary", "")


async def test_api_answers_in_english_unless_a_page_asks(client: Sender) -> None:
    path = f"/api/videos/{uuid4()}"
    english = await (await client.get(path, headers=GERMAN)).get_json()
    german = await (await client.get(path, headers={"Portal-Language": "de"})).get_json()
    assert english["detail"].startswith("There is no video with this id.")
    assert german["code"] == english["code"]
    assert german["detail"] != english["detail"]
