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
        ("", "12 characters or more"),
        ("elevenchars", "12 characters or more"),
        ("x" * (MAX_LENGTH + 1), "at most 1000"),
        ("password1234", "easily guessed"),
        ("PassWord2024", "easily guessed"),
        ("qwertyuiop123", "easily guessed"),
        ("Correct Horse Battery Staple", "easily guessed"),
        ("aaaaaaaaaaaaaaaa", "easily guessed"),
        ("abababababab", "easily guessed"),
        (EMAIL, "easily guessed"),
        (EMAIL.upper(), "easily guessed"),
    ],
)
def test_bad_password_is_told_what_is_wrong_with_it(password: str, words: str) -> None:
    assert words in (fault(password, email=EMAIL) or "")


@pytest.mark.parametrize(
    "password",
    [
        PASSWORD,
        "only lower case letters",
        "            a b c d e f",
        "пароль из нескольких слов",
        "\U0001f6a4\U0001f40b\U0001f41f\U0001f980 and eight more",
        "tab\tnewline\nand\0nothing",
        "abcde" * (MAX_LENGTH // 5),
    ],
)
def test_any_other_password_may_be_chosen(password: str) -> None:
    assert fault(password, email=EMAIL) is None


async def test_hash_verifies_its_own_password_alone() -> None:
    passwords = Passwords()
    kept = await passwords.hash(PASSWORD)
    assert kept.startswith(PARAMETERS)
    assert PASSWORD not in kept
    assert await passwords.is_right(PASSWORD, kept)
    assert not await passwords.is_right(PASSWORD + " ", kept)


async def test_without_a_hash_the_same_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    verify = PasswordHasher.verify

    def spy(self: PasswordHasher, kept: str, password: str) -> Any:
        compared.append(kept)
        return verify(self, kept, password)

    monkeypatch.setattr(PasswordHasher, "verify", spy)
    passwords = Passwords()
    for password in (PASSWORD, ""):
        assert not await passwords.is_right(password, None)
    assert len(compared) == 2
    assert all(kept.startswith(PARAMETERS) for kept in compared)


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
