"""Guests: people without an account, with whom videos are shared by their e-mail address.

A guest has a personal link and a code, which are shown once. The first browser that opens the link
and confirms it by the code is the guest's, until the link is renewed. A guest that no video is
shared with any more is deleted. An account with the address, once that is verified, is the guest,
too.
"""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from portal.accounts import tries
from portal.accounts.people import EMAIL, plain_email
from portal.accounts.permissions import Action, Principal, audience_in
from portal.accounts.tokens import digest, new_secret
from portal.database.account_models import MAX_EMAIL_LENGTH, Guest
from portal.database.connection import NOW, execute, fetch_rows, transaction
from portal.errors import FieldError, InvalidRequest, LinkNotValid, NotAllowed
from portal.events.log import AuditAction, record_action
from portal.events.records import AUDIENCE_COLUMNS
from portal.locale.messages import Message

FREE_TRIES = 5
CODE_DIGITS = 8

COLUMNS = ", ".join(AUDIENCE_COLUMNS)
SHARED = f"""
SELECT {COLUMNS} FROM publications WHERE admitted_ids @> ARRAY[%s]
UNION ALL SELECT {COLUMNS} FROM series WHERE admitted_ids @> ARRAY[%s]
"""  # noqa: S608 - put together from constants
UNUSED = """
DELETE FROM guests WHERE created_at < now() - interval '1 day'
  AND NOT EXISTS (SELECT FROM publications WHERE admitted_ids @> ARRAY[guests.id])
  AND NOT EXISTS (SELECT FROM series WHERE admitted_ids @> ARRAY[guests.id])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestLink:
    """New personal link of a guest: the secret of its address, and the code that confirms it."""

    id: UUID
    email: str
    secret: str
    code: str

    @property
    def code_digest(self) -> str:
        """Return the digest of the code to store."""
        return _code_digest(self.secret, self.code)


async def invite(email: str) -> GuestLink:
    """Create a guest. Raises `InvalidRequest` with the pointer `/shares` for an invalid address."""
    plain = plain_email(email)
    if not EMAIL.fullmatch(plain) or len(email.strip()) > MAX_EMAIL_LENGTH:
        message = Message("Enter an email address like ann@example.org.")
        raise InvalidRequest([FieldError("/shares", message)])
    link = _new_link(uuid4(), plain)
    async with transaction():
        await Guest.create(
            id=link.id, email=plain, link_digest=digest(link.secret), code_digest=link.code_digest
        )
        await record_action(AuditAction.GUEST_INVITED, link.id, name=plain)
    return link


async def renew(guest_id: UUID, *, by: Principal) -> GuestLink:
    """Replace a guest's link and code, and sign the guest's browser out. The caller shows both.

    `by` must be able to edit all videos and series that are shared with the guest, and could see
    others by the new link. Raises `NotAllowed`, and `LinkNotValid` for an unknown guest.
    """
    async with transaction():
        guest = await Guest.filter(id=guest_id).select_for_update().get_or_none()
        if guest is None:
            raise LinkNotValid
        shared = [audience_in(row) for row in await fetch_rows(SHARED, guest_id, guest_id)]
        if not all(by.may(Action.EDIT, on=audience) for audience in shared):
            raise NotAllowed(
                Message("This guest also watches videos that you can't edit. Ask an admin.")
            )
        link = _new_link(guest_id, guest.email)
        await Guest.filter(id=guest_id).update(
            link_digest=digest(link.secret), code_digest=link.code_digest, session_digest=None
        )
        await record_action(AuditAction.GUEST_INVITED, guest_id, name=guest.email)
    return link


async def require_link(secret: str) -> Guest:
    """Return the guest of a link that no browser has confirmed yet. Raises `LinkNotValid`."""
    guest = await Guest.get_or_none(link_digest=digest(secret), session_digest=None)
    if guest is None:
        raise LinkNotValid
    return guest


async def confirm(secret: str, code: str, *, address: str) -> str:
    """Bind a link to a browser; return the secret for its cookie.

    `address` is the IP address of the browser. Raises `LinkNotValid`, `TooManyTries`, and
    `InvalidRequest` with the pointer `/code` for a wrong code.
    """
    guest = await require_link(secret)
    name = f"guest {guest.id}"
    await tries.begin(name, address, free=FREE_TRIES)
    digits = "".join(filter(str.isdigit, code))
    if not hmac.compare_digest(guest.code_digest, _code_digest(secret, digits)):
        message = Message("This code is wrong. Check it, then try again.")
        raise InvalidRequest([FieldError("/code", message)])
    own_secret = new_secret()
    async with transaction():
        unbound = Guest.filter(id=guest.id, link_digest=guest.link_digest, session_digest=None)
        if not await unbound.update(session_digest=digest(own_secret), bound_at=NOW):
            raise LinkNotValid
        await record_action(AuditAction.GUEST_CONFIRMED, guest.id, name=guest.email)
    await tries.forget(name, address)
    return own_secret


async def fetch_guests(digests: Sequence[str]) -> dict[str, Guest]:
    """Return the guests of browsers, by the digests of their secrets."""
    guests = await Guest.filter(session_digest__in=list(digests))
    return {guest.session_digest: guest for guest in guests if guest.session_digest}


async def delete_unused() -> None:
    """Delete the guests that nothing is shared with."""
    await execute(UNUSED)


def _new_link(guest_id: UUID, email: str) -> GuestLink:
    code = f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
    return GuestLink(id=guest_id, email=email, secret=new_secret(), code=code)


def _code_digest(secret: str, code: str) -> str:
    # The secret of the link is part of it and not stored, so that a stolen table tells no code.
    return digest(f"{secret}{code}")
