"""Guests whom a change of a video's access invites, and their links, which are shown once."""

from uuid import UUID

from pydantic import Field
from quart import url_for

from portal.accounts import guests
from portal.accounts.directory import HolderKind
from portal.accounts.guests import GuestLink
from portal.events.records import Shape, Uri
from portal.http.addresses import public_url
from portal.http.auth import principal
from portal.http.schemas.access import AccessRecord


class Invitation(Shape):
    """Personal link of a guest, which nobody can read again."""

    id: UUID = Field(description="Identifier of the guest, as in `shares`.")
    email: str = Field(description="Address that the video is shared with.")
    url: Uri = Field(description="Personal link. The first browser that confirms it keeps it.")
    code: str = Field(description="Code that confirms the link. Send it in another way.")

    @classmethod
    def of(cls, link: GuestLink) -> "Invitation":
        """Return a new link with its address."""
        url = public_url(url_for("guests.form", secret=link.secret))
        return cls(id=link.id, email=link.email, url=url, code=link.code)


async def invite_guests(record: AccessRecord) -> tuple[AccessRecord, list[Invitation]]:
    """Create a guest for each share of the kind `guest` without an id; the portal sends nothing.

    Return a copy of the record with their ids, and their links to show. If the record is not saved
    afterwards, the guests are deleted within a day. Raises `InvalidRequest` for an invalid e-mail
    address.
    """
    if record.shares is None:
        return record, []
    shares = list(record.shares)
    invitations = []
    for number, share in enumerate(shares):
        if share.kind is HolderKind.GUEST and share.id is None:
            invitations.append(Invitation.of(await guests.invite(share.name)))
            shares[number] = share.model_copy(update={"id": invitations[-1].id})
    return record.model_copy(update={"shares": shares}), invitations


async def renew(guest_id: UUID) -> Invitation:
    """Replace the link of a guest. Raises `NotAllowed` and `LinkNotValid`."""
    return Invitation.of(await guests.renew(guest_id, by=await principal()))
