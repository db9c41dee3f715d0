"""Audience of a video or a series, as the API and the form of its page take it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Self
from uuid import UUID

from pydantic import ConfigDict, Field, StrictBool, model_validator
from pydantic_core import InitErrorDetails, ValidationError

from portal.accounts.directory import (
    HolderKind,
    fetch_holders,
    find_by_names,
    unknown_name_fault,
)
from portal.accounts.passwords import MAX_LENGTH, Passwords
from portal.accounts.permissions import Right
from portal.database.models import Visibility
from portal.errors import FieldError, InvalidRequest
from portal.http.schemas.base import ClosedShape, Text, fault_error, reject_if
from portal.locale.messages import Message
from portal.text import MAX_SITE_LENGTH, SITE_PATTERN, shown
from portal.videos import visibility
from portal.videos.visibility import (
    MAX_EMBED_ORIGINS,
    MAX_SHARES,
    PasswordChange,
    Share,
    VideoAccess,
    shares_of,
)


def _named_fault(origin: str) -> str | None:
    """Return the fault of a site with its name: a form takes many sites in one field."""
    fault = visibility.embed_origin_fault(origin)
    return Message("“%(site)s”: %(fault)s", site=shown(origin), fault=fault) if fault else None


EmbedOrigin = Annotated[
    Text,
    reject_if(_named_fault),
    Field(json_schema_extra={"pattern": SITE_PATTERN, "maxLength": MAX_SITE_LENGTH}),
]


Password = Annotated[Text, Field(max_length=MAX_LENGTH)]


class ShareRecord(ClosedShape):
    """Account or group that a video or a series is shared with."""

    id: UUID | None = Field(
        None, description="Identifier of the account or group. Leave it out to give `name`."
    )
    kind: HolderKind | None = Field(
        None,
        description="`account`, `group` or `guest`. Requests may leave it out, except to invite a "
        "guest: send `guest` with an e-mail address as `name`, and no `id`.",
    )
    name: Text = Field(
        "", description="E-mail address of the account, or name of the group. Ignored with `id`."
    )
    right: Right = Field(
        description="`watch`, or `edit`, which includes it. The role of an account limits it: "
        "viewers can't edit."
    )


class AudienceRecord(ClosedShape):
    """Audience of a series."""

    # The rule of `private_only_fault`.
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"signedInOnly": {"const": True}}},
            "then": {"properties": {"visibility": {"const": Visibility.PRIVATE.value}}},
        }
    )

    visibility: Visibility = Field(
        description="`public`: listed; `unlisted`: by its address; `private`: its owner, admins, "
        "owners of the portal, the accounts and groups in `shares` and, with `signedInOnly`, "
        "everyone with an account."
    )
    signed_in_only: StrictBool = Field(
        description="Whether everyone with an account may see what is private."
    )
    shares: list[ShareRecord] | None = Field(
        None,
        max_length=MAX_SHARES,
        description="Accounts and groups that it is shared with, whatever its visibility. "
        "A request without it leaves them unchanged.",
    )
    password: Password | None = Field(
        None,
        exclude=True,
        description="Password that lets anyone in who has the address, of what is private. An "
        "empty one removes it; a request without it leaves it unchanged. It is never returned.",
    )
    has_password: StrictBool | None = Field(
        None, description="Whether there is a password. Requests may leave it out; it is ignored."
    )

    @model_validator(mode="after")
    def _check_signed_in_only(self) -> Self:
        return self._checked_private("signedInOnly", is_chosen=self.signed_in_only)

    @model_validator(mode="after")
    def _check_password(self) -> Self:
        return self._checked("password", visibility.password_fault(self.visibility, self.password))

    def _checked_private(self, name: str, *, is_chosen: bool) -> Self:
        fault = visibility.private_only_fault(self.visibility, name, is_chosen=is_chosen)
        return self._checked(name, fault)

    def _checked(self, name: str, fault: str | None) -> Self:
        """Return the record, or raise the fault of a member."""
        if fault:
            detail = InitErrorDetails(type=fault_error(fault), loc=(name,), input="")
            raise ValidationError.from_exception_data(type(self).__name__, [detail])
        return self

    async def value(self) -> VideoAccess:
        """Return the access as services take it, with the ids of its accounts and groups.

        The last share with an account or group counts. Raises `InvalidRequest` for unknown ones.
        """
        return VideoAccess(
            visibility=self.visibility,
            signed_in_only=self.signed_in_only,
            shares=await _resolved(self.shares or ()),
        )

    async def password_change(self, passwords: Passwords) -> PasswordChange | None:
        """Return the change of the password, if there is one."""
        if self.password is None:
            return None
        return PasswordChange(await passwords.hash(self.password) if self.password else None)


class AccessRecord(AudienceRecord):
    """Audience of a video and of its page, and the sites that may show its player in a frame."""

    # The rule of `private_only_fault`.
    model_config = ConfigDict(
        json_schema_extra={
            "if": {
                "anyOf": [
                    {"properties": {"signedInOnly": {"const": True}}},
                    {
                        "properties": {"hasPublicPage": {"const": True}},
                        "required": ["hasPublicPage"],
                    },
                ]
            },
            "then": {"properties": {"visibility": {"const": Visibility.PRIVATE.value}}},
        }
    )

    has_public_page: StrictBool = Field(
        False,
        description="Whether everyone may see the page of a private video: its title, "
        "description, categories, tags, duration and poster. Nobody may watch it by that.",
    )
    embed_origins: list[EmbedOrigin] = Field(
        max_length=MAX_EMBED_ORIGINS,
        description="Sites like `https://blog.example.org` or `https://*.example.org`. Empty "
        "leaves it to the portal's setting.",
    )

    @model_validator(mode="after")
    def _check_public_page(self) -> Self:
        return self._checked_private("hasPublicPage", is_chosen=self.has_public_page)

    async def value(self) -> VideoAccess:
        """Return the access with its page and its sites; see `AudienceRecord.value`."""
        return replace(
            await super().value(),
            has_public_page=self.has_public_page,
            embed_origins=tuple(dict.fromkeys(self.embed_origins)),
        )


async def audience_record(access: VideoAccess) -> AudienceRecord:
    """Return an audience as programs get it: without removed accounts and groups."""
    rights = {share.holder_id: share.right for share in access.shares}
    holders = await fetch_holders(rights)
    return AudienceRecord.model_construct(
        visibility=access.visibility,
        signed_in_only=access.signed_in_only,
        shares=[
            ShareRecord(id=holder.id, kind=holder.kind, name=holder.name, right=rights[holder.id])
            for holder in holders
        ],
        has_password=access.unlock_id is not None,
    )


async def access_record(access: VideoAccess) -> AccessRecord:
    """Return access to a video as programs get it; see `audience_record`."""
    audience = await audience_record(access)
    return AccessRecord.model_construct(
        **dict(audience),
        has_public_page=access.has_public_page,
        embed_origins=list(access.embed_origins),
    )


async def _resolved(shares: Sequence[ShareRecord]) -> tuple[Share, ...]:
    """Return shares with the ids of their accounts and groups. Raises `InvalidRequest`."""
    by_id = {holder.id for holder in await fetch_holders([one.id for one in shares if one.id])}
    by_name = await find_by_names([one.name for one in shares if not one.id])
    rights = {}
    faults = []
    for number, share in enumerate(shares):
        named = by_name.get(share.name.strip().lower())
        if share.id in by_id:
            rights[share.id] = share.right
        elif share.id is None and named:
            rights[named.id] = share.right
        else:
            message = unknown_name_fault(share.name or str(share.id or ""))
            pointer = f"/shares/{number}/{'name' if share.id is None else 'id'}"
            faults.append(FieldError(pointer, message))
    if faults:
        raise InvalidRequest(faults)
    return shares_of(rights)
