"""Sign-in with a password: equal refusals, and growing waits after failures."""

import asyncio
from collections.abc import Awaitable
from math import log2
from time import monotonic
from typing import Any

import pytest
from api_client import run_sql
from signed_in import ADDRESS, PASSWORD, make_account, pass_time, person, renew_failures, session_of

from portal.accounts import people, sessions
from portal.accounts.passwords import Passwords
from portal.accounts.sessions import FREE_TRIES_OF_ACCOUNT
from portal.accounts.tries import FREE_TRIES_OF_ADDRESS, MAX_WAIT_S
from portal.config import Config
from portal.database.account_models import Account, Role
from portal.database.connection import fetch_rows
from portal.errors import SignInRefused, TooManyTries

ANN = "ann@example.org"
WRONG = "five brown little geese"
ELSEWHERE = "203.0.113.66"
# Delays commits like a slow disk: other transactions don't see the written rows yet.
SLOW_COMMITS = """
CREATE FUNCTION wait_for_disk() RETURNS trigger LANGUAGE plpgsql
  AS 'BEGIN PERFORM pg_sleep(0.05 * random()); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON sign_in_failures
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_for_disk();
"""
QUICK_COMMITS = "DROP FUNCTION IF EXISTS wait_for_disk CASCADE"


class Door:
    """Sign-in form that counts how many passwords were compared."""

    def __init__(self, passwords: Passwords) -> None:
        self.passwords = passwords
        self.comparisons = 0
        is_right = passwords.is_right

        async def counted(password: str, password_hash: str | None) -> bool:
            self.comparisons += 1
            return await is_right(password, password_hash)

        passwords.is_right = counted  # type: ignore[method-assign]

    async def enter(
        self, password: str = PASSWORD, *, email: str = ANN, address: str = ADDRESS
    ) -> str:
        return await sessions.sign_in(
            email, password, passwords=self.passwords, device="a test", address=address
        )

    async def fail(self, times: int, **options: Any) -> None:
        """Fail this many times, after the waits."""
        for _ in range(times):
            await pass_time(MAX_WAIT_S)
            assert await outcome(self.enter(WRONG, **options)) == "refused"


async def outcome(work: Awaitable[str]) -> str | int:
    """Return `in`, `refused`, or the seconds to wait."""
    try:
        await work
    except SignInRefused:
        return "refused"
    except TooManyTries as exc:
        return int(exc.headers["Retry-After"])
    return "in"


@pytest.fixture
def door(ann: Account, passwords: Passwords) -> Door:
    return Door(passwords)


async def test_all_refusals_do_the_same_work(ann: Account, door: Door) -> None:
    disabled = await make_account("bob", Role.EDITOR)
    await people.disable(disabled.id, by=person(ann))
    await make_account("carl", Role.EDITOR, has_password=False)
    tries = [
        (ANN, WRONG),
        (ANN, ""),
        ("nobody@example.org", PASSWORD),
        ("", ""),
        ("\0", PASSWORD),
        (disabled.email, PASSWORD),
        ("carl@example.org", ""),
        ("x" * 10_000, PASSWORD),
    ]
    assert {await outcome(door.enter(password, email=email)) for email, password in tries} == {
        "refused"
    }
    assert door.comparisons == len(tries)


async def test_waits_double_from_the_sixth_failure_to_a_minute(door: Door) -> None:
    for _ in range(FREE_TRIES_OF_ACCOUNT):
        assert await outcome(door.enter(WRONG)) == "refused"
    waits = []
    for _ in range(9):
        await renew_failures()
        wait_s = await outcome(door.enter())
        assert isinstance(wait_s, int)
        waits.append(wait_s)
        await pass_time(wait_s)
        assert await outcome(door.enter(WRONG)) == "refused"
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def count_failures() -> int:
    return len(await fetch_rows("SELECT FROM sign_in_failures"))


async def test_try_that_comes_too_early_does_not_count(door: Door) -> None:
    failures = FREE_TRIES_OF_ACCOUNT + 5
    wait_s = 32
    await door.fail(failures)
    comparisons = door.comparisons
    # The attempts take less time than the wait.
    outcomes = {await outcome(door.enter()) for _ in range(50)}
    assert outcomes <= set(range(1, wait_s + 1))
    assert door.comparisons == comparisons
    assert await count_failures() == failures
    await pass_time(wait_s)
    assert await outcome(door.enter()) == "in"


async def test_failures_are_forgotten_after_an_hour_and_with_success(door: Door) -> None:
    await door.fail(FREE_TRIES_OF_ACCOUNT + 3)
    await pass_time(3600)
    assert await outcome(door.enter(WRONG)) == "refused"
    assert await outcome(door.enter()) == "in"
    recent = "SELECT FROM sign_in_failures WHERE email = %s AND at > '2000-01-01'"
    assert not await fetch_rows(recent, ANN)
    # The first failures have no wait again.
    for _ in range(FREE_TRIES_OF_ACCOUNT):
        assert await outcome(door.enter(WRONG, address=ELSEWHERE)) == "refused"


async def test_failures_elsewhere_do_not_slow_down_an_address_with_a_session(
    ann: Account, door: Door
) -> None:
    await session_of(ann, address=ADDRESS)
    await door.fail(FREE_TRIES_OF_ACCOUNT + 6, address=ELSEWHERE)
    await renew_failures()
    assert await outcome(door.enter(address=ELSEWHERE)) == 60
    assert await outcome(door.enter(WRONG, address=ADDRESS)) == "refused"
    assert await outcome(door.enter(address=ADDRESS)) == "in"
    # The sign-in does not end the wait of the other address.
    await renew_failures()
    assert await outcome(door.enter(address=ELSEWHERE)) == 60


async def test_failures_for_many_accounts_slow_down_an_address(ann: Account, door: Door) -> None:
    """Even if the address has a session of an account."""
    await session_of(ann, address=ELSEWHERE)
    for number in range(FREE_TRIES_OF_ADDRESS):
        email = f"{number}@example.org"
        assert await outcome(door.enter(email=email, address=ELSEWHERE)) == "refused"
    for email in (ANN, "next@example.org"):
        await renew_failures()
        assert await outcome(door.enter(email=email, address=ELSEWHERE)) == 1
    assert await outcome(door.enter(address=ADDRESS)) == "in"
    await door.fail(8, email="next@example.org", address=ELSEWHERE)
    await renew_failures()
    assert await outcome(door.enter(address=ELSEWHERE)) == 60


async def test_concurrent_attempts_get_no_more_tries_than_sequential_ones(
    door: Door, config: Config
) -> None:
    """Each attempt has another address, so that only the limit of the account applies."""
    await run_sql(config.database_url, SLOW_COMMITS)
    # The pool opens all its connections first, so that attempts really are concurrent.
    await asyncio.gather(*(fetch_rows("SELECT pg_sleep(0.1)") for _ in range(8)))
    began_at = monotonic()
    outcomes = await asyncio.gather(
        *(outcome(door.enter(WRONG, address=f"192.0.2.{number}")) for number in range(100))
    )
    await run_sql(config.database_url, QUICK_COMMITS)
    assert outcomes.count("refused") == door.comparisons
    # On a busy machine the waits of one second, two seconds and so on may have passed.
    waited = int(log2(monotonic() - began_at + 1))
    assert FREE_TRIES_OF_ACCOUNT <= door.comparisons <= FREE_TRIES_OF_ACCOUNT + waited
    assert await count_failures() == door.comparisons


async def test_sign_in_fails_if_the_password_changes_during_the_comparison(
    ann: Account, door: Door
) -> None:
    is_right = door.passwords.is_right

    async def change_meanwhile(password: str, password_hash: str | None) -> bool:
        is_same = await is_right(password, password_hash)
        await people.set_password(ann, "another hash")
        return is_same

    door.passwords.is_right = change_meanwhile  # type: ignore[method-assign]
    assert await outcome(door.enter()) == "refused"
