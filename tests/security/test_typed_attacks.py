"""Attacks by typed text: `next` with an address of another site, and odd characters anywhere."""

import re
from html import unescape
from urllib.parse import quote

from quart import Quart, Response
from signed_in import OWN_PAGE, PASSWORD, Sender, signed_in, text_of, try_to_sign_in

from portal.database.account_models import Account
from portal.database.connection import execute
from portal.http.addresses import own_path

NASTY = (
    *("https://evil.example/", "HTTPS://evil.example", "https:evil.example", "evil.example"),
    *("//evil.example", "///evil.example", "/\\evil.example", "\\/evil.example"),
    *("/\t/evil.example", "\t//evil.example", " //evil.example", "\x00//evil.example"),
    *("javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "//[::1", "\ud800//"),
    *("//localhost@evil.example/", "?next=//evil.example", "#//evil.example", "./\\evil.example"),
    *("//evil\u3002example", "/\uff0fevil.example", "/\u2028/evil.example", ""),
    "/\r\nLocation: https://evil.example",
)
# Strange paths that belong to this portal.
HARMLESS = (
    "/videos/5d0e3b8a-2c41-4f6b-9a57-0c1d2e3f4a5b/edit?a=1&b=%C3%A9#poster",
    *("/.//evil.example", "/@evil.example", "/https://evil.example", "/%5cevil.example"),
    "/%0d%0aLocation:%20https://evil.example",
)
EVIL = (
    "a\r\nSet-Cookie: evil=1",
    "a\r\n\r\n<script>evil</script>",
    "a\x00b",
    "\ud800\udfff lone",
    "x" * 10_240,
    "\x1b[2J\x07\u2028",
    "{{ 7*7 }}'; DROP TABLE accounts; --",
)
FORM = {"Content-Type": "application/x-www-form-urlencoded", **OWN_PAGE}


async def test_next_is_a_path_of_this_portal(app: Quart) -> None:
    async with app.test_request_context("/"):
        assert {text: own_path(text) for text in NASTY} == dict.fromkeys(NASTY, "/")
        assert [own_path(text) for text in HARMLESS] == list(HARMLESS)


async def test_next_leads_to_a_path_after_and_before_signing_in(app: Quart, olga: Account) -> None:
    owner = await signed_in(app, olga)
    for path, end in (("//evil.example", "/"), (HARMLESS[0], HARMLESS[0])):
        address = f"/sign-in?next={quote(path, safe='')}"
        page = await text_of(await Sender(app).get(address))
        [field] = re.findall(r'<input[^>]*name="next"[^>]*>', page)
        [next_value] = re.findall(r'value="([^"]*)"', field)
        assert unescape(next_value) == end
        for answer in (
            await try_to_sign_in(Sender(app, OWN_PAGE), olga.email, next=path),
            await owner.get(address),
        ):
            assert answer.headers.getlist("Location") == [end]


def encoded(**fields: str) -> str:
    """Encode a form, whose texts may contain lone surrogates."""
    return "&".join(
        f"{name}={quote(text, errors='surrogatepass')}" for name, text in fields.items()
    )


def as_header(text: str) -> str:
    """Return a text as a server passes on a header: bytes as Latin-1, without line ends."""
    return " ".join(text.encode("utf-8", "surrogatepass").decode("latin-1").splitlines())


async def check(answer: Response, *statuses: int) -> None:
    """Check that the response has an expected status and contains no injected header or markup."""
    assert answer.status_code in statuses
    assert all("evil" not in name.lower() for name, _ in answer.headers)
    assert not any(cookie.startswith("evil") for cookie in answer.headers.getlist("Set-Cookie"))
    page = await text_of(answer)
    assert "<script>evil" not in page
    assert "7*7" not in page or "{{ 7*7 }}" in page


async def test_fields_and_headers_may_contain_any_text(app: Quart, olga: Account) -> None:
    nobody = Sender(app, FORM)
    owner = await signed_in(app, olga)
    right = {"email": olga.email, "password": PASSWORD}
    for text in EVIL:
        for name, status in (("email", 422), ("password", 422), ("next", 303)):
            answer = await nobody.post("/sign-in", data=encoded(**{**right, name: text}))
            await check(answer, status)
        path = quote(text, safe="", errors="replace")[:2000]
        for address, form, *statuses in (
            (f"/people/{olga.id}/role", {"role": text}, 422),
            ("/people/invitations", {"role": text}, 422),
            # An empty number of days means for ever.
            ("/account/tokens", {"name": "a", "scopes": "admin", "days": text}, 200, 422),
            ("/account/password", {"current": text, "password": text}, 422),
            (f"/welcome/{path}", {"email": text}, 404),
        ):
            answer = await owner.post(address, data=encoded(**form), headers=FORM)
            await check(answer, *statuses)
        cookie = Sender(app, {"Cookie": f"portal_session={as_header(text)}"})
        await check(await cookie.get("/account"), 303)
        bearer = Sender(app, {"Authorization": f"Bearer {as_header(text)}"})
        await check(await bearer.get("/account"), 401)
        # Otherwise the next sign-in would have to wait.
        await execute("DELETE FROM sign_in_failures")
