"""Passwords: what makes a good one, and argon2id (RFC 9106, low-memory profile: 64 MiB)."""

import asyncio

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError
from argon2.profiles import RFC_9106_LOW_MEMORY

from portal.accounts.common_passwords import COMMON
from portal.errors import FieldError, InvalidRequest

MIN_LENGTH = 12
# Far above any passphrase; what is hashed costs time for every byte.
MAX_LENGTH = 1000
# Each takes 64 MiB and a processor for a tenth of a second.
MAX_AT_ONCE = 2
MIN_DIFFERENT = 5


def fault(password: str, *, email: str) -> str | None:
    """What is wrong with a password, and the remedy; None if it may be chosen.

    No rule says of what characters it is (NIST SP 800-63B, OWASP ASVS 5.0 section 6.2).
    """
    if len(password) < MIN_LENGTH:
        return (
            f"Choose a password of {MIN_LENGTH} characters or more. Several words make a good one."
        )
    if len(password) > MAX_LENGTH:
        return f"Choose a password of at most {MAX_LENGTH} characters."
    plain = password.casefold()
    if plain in COMMON or len(set(plain)) < MIN_DIFFERENT or plain == email.casefold():
        return "Many people use this password, or it is easily guessed. Choose another."
    return None


class Passwords:
    """Hashes and verifies, so many at once; one for a process."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)
        self._nobodys: str | None = None

    async def choose(self, password: str, *, email: str) -> str:
        """The hash to keep of a new password. Raises `InvalidRequest` for one that can't be."""
        if found := fault(password, email=email):
            raise InvalidRequest([FieldError("/password", found)])
        return await self.hash(password)

    async def hash(self, password: str) -> str:
        """The hash to keep, with its parameters and salt."""
        async with self._turns:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def is_right(self, password: str, kept: str | None) -> bool:
        """Whether this is the password. It takes as long where there is none to compare with."""
        if self._nobodys is None:
            self._nobodys = await self.hash("")
        async with self._turns:
            is_same = await asyncio.to_thread(self._verify, password, kept or self._nobodys)
        return is_same and kept is not None

    def _verify(self, password: str, kept: str) -> bool:
        try:
            return self._hasher.verify(kept, password[: MAX_LENGTH + 1])
        except (VerifyMismatchError, VerificationError, InvalidHashError):
            return False
