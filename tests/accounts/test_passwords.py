"""What makes a good password, and how hashes are made and compared."""

import asyncio
from typing import Any

import pytest
from argon2 import PasswordHasher
from signed_in import PASSWORD

from portal.accounts.passwords import MAX_AT_ONCE, MAX_LENGTH, Passwords, fault

EMAIL = "ann.lindgren@example.org"
# RFC 9106, section 4: the second recommended option.
PARAMETERS = "$argon2id$v=19$m=65536,t=3,p=4$"


@pytest.mark.parametrize(
    ("password", "words"),
    [
        ("elevenchars", "12 characters or more"),
        ("x" * (MAX_LENGTH + 1), "at most 1000"),
        ("PassWord2024", "easily guessed"),
        ("Correct Horse Battery Staple", "easily guessed"),
        ("abababababab", "easily guessed"),
        (EMAIL.upper(), "easily guessed"),
        # Any other may be chosen.
        ("            a b c d e f", ""),
        ("пароль из нескольких слов", ""),
        ("abcde" * (MAX_LENGTH // 5), ""),
    ],
)
def test_bad_password_is_told_what_is_wrong_with_it(password: str, words: str) -> None:
    found = fault(password, email=EMAIL) or ""
    assert words in found
    assert bool(found) is bool(words)


async def test_hash_verifies_its_own_password_and_without_one_the_same_work_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[str] = []
    verify = PasswordHasher.verify

    def spy(self: PasswordHasher, kept: str, password: str) -> Any:
        compared.append(kept)
        return verify(self, kept, password)

    monkeypatch.setattr(PasswordHasher, "verify", spy)
    passwords = Passwords()
    kept = await passwords.hash(PASSWORD)
    assert await passwords.is_right(PASSWORD, kept)
    assert not await passwords.is_right(PASSWORD + " ", kept)
    for password in (PASSWORD, ""):
        assert not await passwords.is_right(password, None)
    assert len(compared) == 4
    assert all(it.startswith(PARAMETERS) for it in compared)


async def test_no_more_are_hashed_at_once_than_there_is_memory_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once = most = 0

    async def to_thread(_work: Any, *_: Any) -> str:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return "a hash"

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    passwords = Passwords()
    await asyncio.gather(*(passwords.hash(PASSWORD) for _ in range(20)))
    assert most == MAX_AT_ONCE
