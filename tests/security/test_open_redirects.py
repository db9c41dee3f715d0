"""Attacks by `next`, which is to lead from the sign-in page to another site."""

import re
from html import unescape
from urllib.parse import quote, urljoin, urlsplit

from quart import Quart
from signed_in import OWN_PAGE, PASSWORD, Sender, signed_in, text_of, try_to_sign_in

from portal.database.account_models import Account

BASE = "http://localhost/sign-in"
NASTY = (
    "https://evil.example/",
    "HTTPS://evil.example",
    "//evil.example",
    "///evil.example",
    "////evil.example/%2f..",
    "/\\evil.example",
    "\\/evil.example",
    "\\\\evil.example",
    "/\\/evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "\t//evil.example",
    " //evil.example",
    " https://evil.example",
    "\x00//evil.example",
    "\x0b//evil.example",
    "https:evil.example",
    "https:/evil.example",
    "http:\\\\evil.example",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//evil.example\\@localhost/",
    "//localhost@evil.example/",
    "//[",
    "//[::1",
    "http://[",
    "evil.example",
    "@evil.example",
    "?next=//evil.example",
    "#//evil.example",
    "./\\evil.example",
    "//evil\u3002example",
    "/\uff0fevil.example",
    "/\u2028/evil.example",
    "/\r\nLocation: https://evil.example",
    "\ud800//evil.example",
    "",
)
# Strange, and of this portal all the same.
HARMLESS = (
    "/",
    "/upload",
    "/videos/5d0e3b8a-2c41-4f6b-9a57-0c1d2e3f4a5b/edit?a=1&b=%C3%A9#poster",
    "/.//evil.example",
    "/..//evil.example",
    "/@evil.example",
    "/https://evil.example",
    "/%2f/evil.example",
    "/%5cevil.example",
    "/%0d%0aLocation:%20https://evil.example",
    "/?next=https://evil.example",
    "/[",
    "/;//evil.example",
)


def browsers_target(location: str) -> str:
    """The host that a browser goes to, as the URL standard reads an address (whatwg.org)."""
    plain = re.sub(r"[\t\r\n]", "", location.strip("".join(map(chr, range(33)))))
    return urlsplit(urljoin(BASE, plain.replace("\\", "/"))).netloc


def encoded(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def form_of(account: Account) -> str:
    """The form with the right password."""
    return f"email={encoded(account.email)}&password={encoded(PASSWORD)}"


async def test_nothing_leads_to_another_site(app: Quart, olga: Account) -> None:
    """Thirty-eight spellings: in the address and in the form, signed in before and after, and in
    the field that the form hands on.
    """
    sender = Sender(app, {**OWN_PAGE, "Content-Type": "application/x-www-form-urlencoded"})
    person = await signed_in(app, olga)
    assert len(NASTY) == 38
    for path in NASTY:
        after = await sender.post("/sign-in", data=f"{form_of(olga)}&next={encoded(path)}")
        before = await person.get(f"/sign-in?next={encoded(path)}")
        for answer in (after, before):
            assert answer.status_code == 303, path
            assert answer.headers.getlist("Location") == ["/"], path
        form = await Sender(app).get(f"/sign-in?next={encoded(path)}")
        assert form.status_code == 200, path
        assert "evil" not in await text_of(form), path


async def test_own_paths_are_led_on_to(app: Quart, olga: Account) -> None:
    """Thirteen that only look like attacks, from the address through the form to the end."""
    for path in HARMLESS:
        page = await text_of(await Sender(app).get(f"/sign-in?next={encoded(path)}"))
        [field] = re.findall(r'<input[^>]*name="next"[^>]*>', page)
        [handed_on] = re.findall(r'value="([^"]*)"', field)
        assert unescape(handed_on) == path
        answer = await try_to_sign_in(Sender(app, OWN_PAGE), olga.email, next=unescape(handed_on))
        location = answer.headers["Location"]
        assert browsers_target(location) == "localhost", path
        assert location.startswith("/"), path
        assert not location.startswith("//"), path
