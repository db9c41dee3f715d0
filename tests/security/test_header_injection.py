"""Attacks by odd letters in what ends up in headers, rows and pages."""

from urllib.parse import quote

from hostile_texts import ALL
from quart import Quart, Response
from signed_in import (
    OWN_PAGE,
    PASSWORD,
    Sender,
    browser,
    person,
    person_of,
    session_in,
    signed_in,
    text_of,
)

from portal.accounts import api_tokens, links, sessions
from portal.database.account_models import Account, SignInFailure
from portal.database.states import Role

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


async def test_new_account_has_an_address_without_odd_letters(app: Quart, olga: Account) -> None:
    """Thirteen texts as the address, before and after an @, of who accepts an invitation."""
    made = 0
    for text in EVIL:
        for email in (text, f"{text}@example.org", f"a@{text}"):
            secret = await links.invite(Role.EDITOR, by=person(olga))
            data = encoded(email=email, password="pass" + text[:100])
            answer = await Sender(app, FORM).post(f"/welcome/{secret}", data=data)
            await check(answer, 303, 422)
            made += answer.status_code == 303
    accounts = await Account.all()
    assert len(accounts) == made + 1
    for account in accounts:
        assert account.email.isprintable(), account.email
        assert not any(letter.isspace() for letter in account.email)


def as_header(text: str) -> str:
    """A text as a server hands it on: bytes, of which each is a letter, without line ends."""
    return " ".join(text.encode("utf-8", "surrogatepass").decode("latin-1").splitlines())


async def test_browser_may_call_itself_anything(app: Quart, olga: Account) -> None:
    """Sixty names of browsers: all are listed, and none becomes markup of the page that does."""
    data, last = encoded(email=olga.email, password=PASSWORD), ""
    names = [as_header(text) for text in (*EVIL, *ALL)]
    for name in names:
        answer = await Sender(app, {**FORM, "User-Agent": name}).post("/sign-in", data=data)
        await check(answer, 303)
        last = session_in(answer)
    found = await sessions.list_sessions(await person_of(last))
    assert len(found) == len(names) == 60
    assert max(len(it.device) for it in found) == 200
    page = await check(await browser(app, last).get("/account"), 200)
    for markup in ("<script>alert", "<img src=x", "<svg/onload", "<base href", "<iframe src"):
        assert markup not in page


async def test_token_may_have_any_name_that_can_be_seen(app: Quart, olga: Account) -> None:
    """Sixty names: kept and shown as text, or told that they can't be."""
    sender = await signed_in(app, olga)
    for text in (*EVIL, *ALL):
        data = encoded(name=text, scopes="videos:read", days="7")
        await check(await sender.post("/account/tokens", data=data, headers=FORM), 200, 422)
    assert len(await api_tokens.list_tokens(olga.id)) > 40
    page = await check(await sender.get("/account"), 200)
    for markup in ("<script>alert", "<img src=x", "<svg/onload", "<base href", "<iframe src"):
        assert markup not in page


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
