"""Signing in with e-mail address and password, slower and slower for who fails.

After five failures of an account, or twenty from an address, within an hour the next try has to
wait: one second, then twice as long each time, at most a minute. A try that comes too early
does not count, so nobody is locked out for good. Where an account is signed in already its own
failures don't slow it down: guessing from elsewhere can't keep its person out.
"""

import logging
import re
from math import ceil

from portal.accounts import rows, sessions
from portal.accounts.audit import AuditAction, note, note_refused
from portal.accounts.passwords import Passwords
from portal.accounts.people import plain_email
from portal.database.account_models import Account
from portal.database.connection import transaction
from portal.database.rows import NOW
from portal.errors import SignInRefused, TooManyTries

logger = logging.getLogger(__name__)

FREE_TRIES_OF_ACCOUNT = 5
FREE_TRIES_OF_ADDRESS = 20
MAX_WAIT_S = 60
INTERNET_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]+@[\w-]+(\.[\w-]+)+")


async def sign_in(
    email: str, password: str, *, passwords: Passwords, device: str, address: str
) -> str:
    """Begin a session; returns what its cookie holds. Raises as `require_password`."""
    account = await require_password(email, password, passwords=passwords, address=address)
    secret = await _begin(account, device, address)
    if not secret:
        raise SignInRefused
    return secret


async def require_password(
    email: str, password: str, *, passwords: Passwords, address: str
) -> Account:
    """The account that these belong to.

    Raises `SignInRefused`, the same and after the same time whatever was wrong, or `TooManyTries`.
    """
    email = plain_email(email)
    await _slow_down(email, address)
    account = await Account.get_or_none(email=email, is_disabled=False)
    is_right = await passwords.is_right(password, account.password_hash if account else None)
    if account is None or not is_right:
        logger.warning("Sign-in refused", extra={"action": "sign_in_refused", "client": address})
        # Someone's password may have been typed in the place of the address.
        is_address = account is not None or INTERNET_EMAIL.fullmatch(email)
        await note_refused(email if is_address else "")
        raise SignInRefused
    await rows.forget_tries(email, address)
    return account


async def _begin(account: Account, device: str, address: str) -> str:
    """Begin a session of an account as it was read; nothing if it has been changed since."""
    is_same = {"id": account.id, "password_hash": account.password_hash, "is_disabled": False}
    async with transaction():
        # Comparing a password takes a while, and whoever changes one ends all sessions. Written
        # first, the table is locked before the row is, as for those who change accounts.
        if not await Account.filter(**is_same).update(seen_at=NOW):
            return ""
        await note(AuditAction.SIGNED_IN, account.id, name=account.email, by=account)
        logger.info("Signed in", extra={"action": "sign_in", "account_id": str(account.id)})
        return await sessions.begin(account.id, device=device, address=address)


async def _slow_down(email: str, address: str) -> None:
    async with transaction():
        await rows.lock_tries()
        earlier = await rows.earlier_tries(email, address)
        wait_s = max(
            _wait_s(earlier["of_account"] - FREE_TRIES_OF_ACCOUNT),
            _wait_s(earlier["of_address"] - FREE_TRIES_OF_ADDRESS),
        ) - (earlier["last_s"] or 0.0)
        if wait_s > 0:
            raise TooManyTries(ceil(wait_s))
        await rows.note_try(email, address)


def _wait_s(surplus: int) -> float:
    """After so many failures more than are free."""
    return 0.0 if surplus < 0 else float(min(MAX_WAIT_S, 2 ** min(surplus, 10)))
