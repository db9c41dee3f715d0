"""Attacks that ask who has an account: by what is answered, and by how long that takes."""

import re
from dataclasses import replace
from statistics import median
from time import perf_counter

import pytest
from argon2.profiles import RFC_9106_LOW_MEMORY
from quart import Quart, Response
from signed_in import (
    ADDRESS,
    OWN_PAGE,
    PASSWORD,
    Sender,
    make_account,
    person,
    renew_failures,
    session_in,
    session_of,
    text_of,
    try_to_sign_in,
)

from portal.accounts import links, people
from portal.accounts.passwords import Passwords
from portal.database.account_models import Account
from portal.database.states import Role

WRONG = "five brown little geese"
# Of each request, whoever asks.
OF_REQUESTS = {"x-request-id", "date"}
TRIES = 20
# Nobody is told apart by the tenth of a second that a hash takes; noise of a busy machine is.
FACTOR = 1.5
LOOKS = 3


async def anatomy(answer: Response, *told: str) -> tuple[int, list[tuple[str, str]], str]:
    """Status, headers and body of an answer, but for what was sent and the request's id."""
    headers = [(name, value) for name, value in answer.headers if name.lower() not in OF_REQUESTS]
    body = await text_of(answer)
    for text in told:
        body = body.replace(text, "…")
    length = [
        (name, "…") if name.lower() == "content-length" else (name, value)
        for name, value in headers
    ]
    return answer.status_code, length, re.sub(r"<code>[0-9a-f]{32}</code>", "", body)


async def make_kinds(olga: Account, suffix: str = "") -> dict[str, str]:
    """Addresses of the four kinds whose answers must be alike."""
    disabled = await make_account(f"disabled{suffix}", Role.EDITOR)
    await people.disable(disabled.id, by=person(olga))
    await make_account(f"invited{suffix}", Role.EDITOR, has_password=False)
    await make_account(f"account{suffix}", Role.EDITOR)
    return {
        name: f"{name}{suffix}@example.org"
        for name in ("disabled", "invited", "account", "unknown")
    }


async def test_refusals_to_sign_in_are_all_alike(app: Quart, olga: Account) -> None:
    """Eight tries of each of four kinds: refused five times, then told to wait for as long."""
    kinds = await make_kinds(olga)
    found: dict[str, list[object]] = {name: [] for name in kinds}
    for number in range(8):
        for kind, email in kinds.items():
            password = WRONG if kind == "account" else PASSWORD
            sender = Sender(app, OWN_PAGE, f"192.0.2.{number}")
            await renew_failures()
            answer = await try_to_sign_in(sender, email, password)
            found[kind].append(await anatomy(answer, email))
    first, *rest = found.values()
    assert [it[0] for it in first] == [*[422] * 5, *[429] * 3]  # type: ignore[index]
    assert all(it == first for it in rest)


async def test_unusual_spellings_of_an_address_tell_nothing(app: Quart, olga: Account) -> None:
    """Five spellings, of an account and of nobody: the refusals are alike."""
    kinds = await make_kinds(olga)
    for number, change in enumerate(
        (
            str.upper,
            str.title,
            lambda it: f" {it} ",
            lambda it: f"{it}\0",
            lambda it: it + " " * 300,
        )
    ):
        told = []
        for email in (kinds["account"], kinds["unknown"]):
            sender = Sender(app, OWN_PAGE, f"192.0.2.{number}")
            answer = await try_to_sign_in(sender, change(email), WRONG)
            status, headers, body = await anatomy(answer)
            told.append(
                (status, headers, re.sub(r'value="[^"]*example[^"]*"', "", body, flags=re.I))
            )
        assert told[0] == told[1]


async def test_nothing_else_tells_who_has_an_account(app: Quart, olga: Account) -> None:
    """Links that are void for four reasons, with each method; all are alike."""
    invited = await people.add("invited@example.org", Role.EDITOR)
    disabled = await links.offer_password(invited.id, by=person(olga))
    await people.disable(invited.id, by=person(olga))
    replaced = await links.offer_password(olga.id, by=person(olga))
    await links.offer_password(olga.id, by=person(olga))
    used = await links.invite(Role.VIEWER, by=person(olga))
    form = {"email": "new@example.org", "password": WRONG}
    assert (await Sender(app).post(f"/welcome/{used}", form=form)).status_code == 303
    for method in ("GET", "POST"):
        told = [
            await anatomy(await Sender(app).ask(method, f"/welcome/{secret}"), secret)
            for secret in (disabled, replaced, used, "x" * 43)
        ]
        assert told[0][0] == 404
        assert all(it == told[0] for it in told)


async def test_who_is_signed_in_elsewhere_is_slowed_down_like_nobody(
    app: Quart, olga: Account
) -> None:
    """Seven wrong passwords from an attacker's address: a session at another one tells nothing."""
    kinds = await make_kinds(olga)
    await session_of(await people.get(kinds["account"]), address=ADDRESS)
    told: dict[str, list[int]] = {}
    for kind in ("account", "unknown"):
        told[kind] = []
        for _ in range(7):
            await renew_failures()
            answer = await try_to_sign_in(Sender(app, OWN_PAGE, "192.0.2.1"), kinds[kind], WRONG)
            told[kind].append(answer.status_code)
    assert told["account"] == told["unknown"] == [*[422] * 5, 429, 429]


@pytest.fixture
async def slow_app(app: Quart, monkeypatch: pytest.MonkeyPatch) -> Quart:
    """The app with real passwords, each of which takes a tenth of a second."""
    monkeypatch.setattr("portal.accounts.passwords.RFC_9106_LOW_MEMORY", RFC_9106_LOW_MEMORY)
    app.extensions["portal"] = replace(app.extensions["portal"], passwords=Passwords())
    return app


@pytest.mark.slow
async def test_refusals_take_the_same_time(slow_app: Quart, olga: Account) -> None:
    """The medians of the four kinds lie within a factor that noise alone explains.

    Other work on the machine may tear them apart once, but not at every look.
    """
    looks: list[dict[str, float]] = []
    while len(looks) < LOOKS and not any(are_alike(it) for it in looks):
        looks.append(await median_times(slow_app, olga, len(looks)))
    assert any(are_alike(it) for it in looks), looks


def are_alike(medians: dict[str, float]) -> bool:
    assert min(medians.values()) > 0.02
    return max(medians.values()) < FACTOR * min(medians.values())


async def median_times(slow_app: Quart, olga: Account, look: int) -> dict[str, float]:
    """Of twenty tries of each of four kinds, by turns, in seconds; none is slowed down, and each is
    the first of its account.
    """
    passwords = slow_app.extensions["portal"].passwords
    kept = await passwords.hash(PASSWORD)
    # What the first comparison of a process makes for all others.
    await passwords.is_right(PASSWORD, None)
    kinds = [await make_kinds(olga, f"{look}-{number}") for number in range(TRIES)]
    await Account.filter(email__startswith="disabled").update(password_hash=kept)
    await Account.filter(email__startswith="account").update(password_hash=kept)
    times: dict[str, list[float]] = {name: [] for name in kinds[0]}
    for number, addresses in enumerate(kinds):
        # The order changes, so that none always comes after the same.
        names = list(addresses)[number % 4 :] + list(addresses)[: number % 4]
        for kind in names:
            sender = Sender(slow_app, OWN_PAGE, f"192.0.2.{look * TRIES + number}")
            began_at = perf_counter()
            answer = await try_to_sign_in(sender, addresses[kind], WRONG)
            times[kind].append(perf_counter() - began_at)
            assert answer.status_code == 422
            assert session_in(answer) == ""
    return {kind: median(values) for kind, values in times.items()}
