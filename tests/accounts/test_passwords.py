"""Rules for passwords, and hashing and comparing them."""

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
        # All other passwords are accepted.
        ("            a b c d e f", ""),
        ("пароль из нескольких слов", ""),
        ("abcde" * (MAX_LENGTH // 5), ""),
    ],
)
def test_unacceptable_password_has_a_message(password: str, words: str) -> None:
    message = fault(password, email=EMAIL) or ""
    assert words in message
    assert bool(message) is bool(words)


async def test_comparing_without_a_hash_does_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    verify = PasswordHasher.verify

    def spy(self: PasswordHasher, password_hash: str, password: str) -> Any:
        compared.append(password_hash)
        return verify(self, password_hash, password)

    monkeypatch.setattr(PasswordHasher, "verify", spy)
    passwords = Passwords()
    password_hash = await passwords.hash(PASSWORD)
    assert await passwords.is_right(PASSWORD, password_hash)
    assert not await passwords.is_right(PASSWORD + " ", password_hash)
    for password in (PASSWORD, ""):
        assert not await passwords.is_right(password, None)
    assert len(compared) == 4
    assert all(password_hash.startswith(PARAMETERS) for password_hash in compared)


async def test_number_of_concurrent_hashes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
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
