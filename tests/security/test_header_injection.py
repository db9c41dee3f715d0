"""Attacks by odd letters in what ends up in headers, rows and pages."""

from urllib.parse import quote

from quart import Quart, Response
from signed_in import (
    OWN_PAGE,
    PASSWORD,
    Sender,
    signed_in,
    text_of,
)

from portal.database.account_models import Account, SignInFailure

EVIL = (
    "a\r\nSet-Cookie: evil=1",
    "a\nSet-Cookie: evil=1",
    "a\r\n\r\n<script>evil</script>",
    "a\x00b",
    "\ud800\udfff lone",
    "\udcff",
    "x" * 10_240,
    "\u2028\u2029\x85\x0b\x0c",
    "\x1b[2J\x07",
    "é€\U0001f600" * 50,
    "%0d%0aSet-Cookie:%20evil=1",
    "'; DROP TABLE accounts; --",
    "{{ 7*7 }}",
)
FORM = {"Content-Type": "application/x-www-form-urlencoded", **OWN_PAGE}


def encoded(**fields: str) -> str:
    """A form, whose texts may hold what is no Unicode."""
    return "&".join(f"{it}={quote(text, errors='surrogatepass')}" for it, text in fields.items())


async def check(answer: Response, *statuses: int) -> str:
    """That the answer is no fault of ours, and has no header that was smuggled in."""
    assert answer.status_code in statuses
    for name, value in answer.headers:
        assert "evil" not in name.lower()
        assert "\r" not in value
        assert "\n" not in value
    cookies = answer.headers.getlist("Set-Cookie")
    assert all(not it.startswith("evil") for it in cookies)
    page = await text_of(answer)
    assert "<script>evil" not in page
    assert "7*7" not in page or "{{ 7*7 }}" in page
    return page


async def test_address_and_password_may_hold_anything(app: Quart, olga: Account) -> None:
    """Thirteen texts in three fields of the form to sign in, one by one and all at once."""
    sender = Sender(app, FORM)
    right = {"email": olga.email, "password": PASSWORD, "next": "/upload"}
    for text in EVIL:
        for name, status in (("email", 422), ("password", 422), ("next", 303)):
            answer = await sender.post("/sign-in", data=encoded(**{**right, name: text}))
            await check(answer, status)
        everything = encoded(email=text, password=text, next=text, evil=text)
        await check(await sender.post("/sign-in", data=everything), 422)
        path = f"/sign-in?next={quote(text, errors='surrogatepass')}"
        await check(await sender.get(path), 200)
        # Nobody is to wait for having failed.
        await SignInFailure.all().delete()


def as_header(text: str) -> str:
    """A text as a server hands it on: bytes, of which each is a letter, without line ends."""
    return " ".join(text.encode("utf-8", "surrogatepass").decode("latin-1").splitlines())


async def test_other_fields_may_hold_anything(app: Quart, olga: Account) -> None:
    """Thirteen texts as a role, scope, days, password, secret, cookie and bearer."""
    sender = await signed_in(app, olga)
    for text in EVIL:
        path = quote(text, safe="", errors="replace")[:2000]
        forms: list[tuple[str, dict[str, str], tuple[int, ...]]] = [
            (f"/people/{olga.id}/role", {"role": text}, (422,)),
            ("/people/invitations", {"role": text}, (422,)),
            ("/account/tokens", {"name": "a", "scopes": text}, (422,)),
            # Blanks are no days, and none is for ever.
            ("/account/tokens", {"name": "a", "scopes": "admin", "days": text}, (200, 422)),
            ("/account/password", {"current": text, "password": text}, (422,)),
            (f"/welcome/{path}", {"email": text}, (404,)),
        ]
        for address, form, statuses in forms:
            answer = await sender.post(address, data=encoded(**form), headers=FORM)
            await check(answer, *statuses)
        cookie = Sender(app, {"Cookie": f"portal_session={as_header(text)}"})
        await check(await cookie.get("/account"), 303)
        bearer = Sender(app, {"Authorization": f"Bearer {as_header(text)}"})
        await check(await bearer.get("/account"), 401)
