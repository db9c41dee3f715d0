"""Rules for passwords, and their hashes: argon2id (RFC 9106, low-memory profile: 64 MiB)."""

import asyncio

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from portal.errors import FieldError, InvalidRequest
from portal.locale.messages import Message

MIN_LENGTH = 12
# Far above any passphrase; hashing takes time for every byte.
MAX_LENGTH = 1000
# A hash takes 64 MiB and a processor for a tenth of a second.
MAX_AT_ONCE = 2
MIN_DIFFERENT = 5

# Passwords of at least `MIN_LENGTH` characters that lists of leaked passwords have in common:
# keyboard runs and short phrases, and words with an ending.
_RUNS = """
    123456789012 1234567890123 12345678901234 123456789012345 1234567890123456 012345678910
    098765432109 987654321098 abcdefghijkl abcdefghijklm abcdefghijklmnop abcd12345678
    abcdef123456 abc123456789 a12345678901 1q2w3e4r5t6y 1q2w3e4r5t6y7u 1qaz2wsx3edc
    1qaz2wsx3edc4rfv qwertyuiop12 qwertyuiop123 qwertyuiop[] qwertyuiopasdf qwertyuiopasdfghjkl
    qwerty123456 qwerty1234567 qwerty12345678 qwertyqwerty asdfghjkl123 asdfghjklqwertyuiop
    asdfasdfasdf zaq12wsxcde3 zxcvbnm12345 q1w2e3r4t5y6 correcthorsebatterystaple mypassword123
    thisismypassword adminadminadmin unbelievable iloveyousomuch passwordpassword testtesttest
    default12345
"""
_WORDS = """
    password passw0rd welcome letmein iloveyou administrator admin portal changeme secret
    football baseball sunshine princess superman dragon monkey trustno1 mustang computer
    internet
"""
_ENDINGS = ["1234", "12345", "123456", "1234567", "12345678", "123", "123!", "1234!", "!", "1!"] + [
    str(year) for year in range(2015, 2036)
]
COMMON = frozenset(
    {
        "correct horse battery staple",
        *_RUNS.split(),
        *(word + ending for word in _WORDS.split() for ending in (*_ENDINGS, word)),
    }
)


def fault(password: str, *, email: str) -> str | None:
    """Return what is wrong with a new password; None if it is acceptable.

    There are no rules about kinds of characters (NIST SP 800-63B, OWASP ASVS 5.0 section 6.2).
    """
    if len(password) < MIN_LENGTH:
        return Message(
            "Choose a password of %(least)s characters or more. Several words make a good one.",
            least=MIN_LENGTH,
        )
    if len(password) > MAX_LENGTH:
        return Message("Choose a password of at most %(limit)s characters.", limit=MAX_LENGTH)
    plain = password.casefold()
    if plain in COMMON or len(set(plain)) < MIN_DIFFERENT or plain == email.casefold():
        return Message("This password is widely used or easily guessed. Choose another one.")
    return None


class Passwords:
    """Hashing and verification of passwords, `MAX_AT_ONCE` at a time in a process."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)
        self._dummy_hash: str | None = None

    async def choose(self, password: str, *, email: str) -> str:
        """Return the hash of a new password.

        Raises `InvalidRequest` with the pointer `/password` for one in which `fault` finds a fault,
        such as the account's own address.
        """
        if message := fault(password, email=email):
            raise InvalidRequest([FieldError("/password", message)])
        return await self.hash(password)

    async def hash(self, password: str) -> str:
        """Return the hash of a password, with its parameters and salt."""
        async with self._turns:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def is_right(self, password: str, password_hash: str | None) -> bool:
        """Return whether the password has this hash; without a hash it takes the same time."""
        if self._dummy_hash is None:
            self._dummy_hash = await self.hash("")
        compared = password_hash or self._dummy_hash
        async with self._turns:
            try:
                await asyncio.to_thread(self._hasher.verify, compared, password[: MAX_LENGTH + 1])
            except (VerificationError, InvalidHashError):
                return False
        return password_hash is not None
