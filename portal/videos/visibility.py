"""Access to a video: its visibility, whom it is shared with, and the sites that may frame it.

A program's change names the versions that it is for. If another version is recorded, nothing is
written, unless the change is recorded already. A person's form has the values that it was made from
instead, and is merged with changes that others have saved since.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

from portal.accounts.permissions import Audience, Right, audience_of
from portal.database.connection import transaction
from portal.database.models import Publication, Video, Visibility
from portal.errors import AccessChanged
from portal.events.log import AuditAction, changed_fields, record_action
from portal.locale.messages import Message
from portal.text import is_site
from portal.videos.merging import Merged, MergeRule, Values, merge, united
from portal.videos.reading import check_version, locked_video

MAX_EMBED_ORIGINS = 20
MAX_SHARES = 500
# Choice of forms beside the visibilities: private, and for everyone with an account.
MEMBERS = "members"
# Choice of forms beside the visibilities: private, with a page for everyone.
PUBLIC_PAGE = "page"
# Choices of forms, from the largest audience to the smallest.
CHOICES = (Visibility.PUBLIC, Visibility.UNLISTED, MEMBERS, PUBLIC_PAGE, Visibility.PRIVATE)
# Faults of members of an audience that are true without the visibility `private`.
PRIVATE_ONLY = {
    "signedInOnly": Message(
        "Only a private video can be for everyone signed in. Choose private, or false here."
    ),
    "hasPublicPage": Message(
        "Only a private video can have a public page. Choose private, or false here."
    ),
}
# Guessing is slow (`accounts.tries`), so people may pass on a short one.
MIN_PASSWORD_LENGTH = 6


class TooManyShares(Exception):
    """The video is shared with as many accounts and groups as it can be."""


@dataclass(frozen=True, slots=True, order=True)
class Share:
    """Right of an account or a group, `holder_id`, in a video."""

    holder_id: UUID
    right: Right


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoAccess:
    """Access to a video. Empty `embed_origins` leave framing to the portal's setting.

    `shares` are ordered, one for each account and group. `unlock_id` belongs to the password, which
    only private videos have; a new one has a new id. Only private videos have `has_public_page`.
    """

    visibility: Visibility
    signed_in_only: bool = False
    has_public_page: bool = False
    embed_origins: tuple[str, ...] = ()
    shares: tuple[Share, ...] = ()
    unlock_id: UUID | None = None

    @property
    def version(self) -> str:
        """Digest of the values."""
        text = json.dumps(asdict(self), sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _united_sites(base: tuple[str, ...], *changed: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return both changes of the sites in one; None for a conflict.

    An empty list stands for the portal's setting, so it can't be merged with a list of sites.
    """
    sites = tuple(united(base, *changed))
    return sites if sites and all(changed) and len(sites) <= MAX_EMBED_ORIGINS else None


def _united_shares(
    base: tuple[Share, ...], mine: tuple[Share, ...], theirs: tuple[Share, ...]
) -> tuple[Share, ...] | None:
    """Return both changes of the shares in one; None for a conflict, and for too many shares.

    It is a conflict if both changed the right of the same account or group in different ways.
    """
    former, own, other = (
        {share.holder_id: share.right for share in shares} for shares in (base, mine, theirs)
    )
    merged = {}
    for holder_id in former.keys() | own.keys() | other.keys():
        before, here, there = (rights.get(holder_id) for rights in (former, own, other))
        if before not in (here, there) and here is not there:
            return None
        if right := there if here is before else here:
            merged[holder_id] = right
    return shares_of(merged) if len(merged) <= MAX_SHARES else None


def shares_of(rights: Mapping[UUID, Right]) -> tuple[Share, ...]:
    """Return rights by account or group as ordered shares."""
    return tuple(sorted(Share(holder_id, right) for holder_id, right in rights.items()))


def with_viewers(access: VideoAccess, holder_ids: Iterable[UUID]) -> VideoAccess:
    """Return access that is shared with these accounts and groups, too; present rights stay.

    Raises `TooManyShares`.
    """
    present = {share.holder_id: share.right for share in access.shares}
    rights = dict.fromkeys(holder_ids, Right.WATCH) | present
    if len(rights) > MAX_SHARES:
        raise TooManyShares
    return replace(access, shares=shares_of(rights))


def with_choice(access: VideoAccess, choice: str) -> VideoAccess:
    """Return access with one of `CHOICES`."""
    is_visibility = choice in list(Visibility)
    return replace(
        access,
        visibility=Visibility(choice) if is_visibility else Visibility.PRIVATE,
        signed_in_only=choice == MEMBERS,
        has_public_page=choice == PUBLIC_PAGE,
    )


@dataclass(frozen=True, slots=True)
class PasswordChange:
    """New password of a video or a series, as its hash; None removes the password."""

    hash: str | None


MERGED_FIELDS = {
    "visibility": MergeRule(compared=tuple),
    "embed_origins": MergeRule(compared=frozenset, united=_united_sites),
    "shares": MergeRule(compared=frozenset, united=_united_shares),
}


def mergeable(
    visibility: str,
    embed_origins: Iterable[str],
    shares: tuple[Share, ...],
    *,
    signed_in_only: bool,
    has_public_page: bool,
) -> Values:
    """Return access as merged values. The visibility is merged as one with its two boxes."""
    return {
        "visibility": (visibility, signed_in_only, has_public_page),
        "embed_origins": tuple(embed_origins),
        "shares": shares,
    }


def private_only_fault(visibility: Visibility, member: str, *, is_chosen: bool) -> str | None:
    """Return why a video of this visibility can't have a setting of private videos; None if it can.

    `member` is a key of `PRIVATE_ONLY`, and `is_chosen` tells whether the setting is on.
    """
    return PRIVATE_ONLY[member] if is_chosen and visibility is not Visibility.PRIVATE else None


def password_fault(visibility: Visibility, password: str | None) -> str | None:
    """Return what is wrong with a new password, and the remedy; None if nothing is."""
    if not password:
        return None
    if visibility is not Visibility.PRIVATE:
        return Message(
            "Only a private video or series can have a password. Choose private, or none here."
        )
    if len(password) < MIN_PASSWORD_LENGTH:
        return Message(
            "Choose a password of %(least)s characters or more.", least=MIN_PASSWORD_LENGTH
        )
    return None


def embed_origin_fault(origin: str) -> str | None:
    """Return what is wrong with the name of a site, and the remedy; None if nothing is."""
    if is_site(origin):
        return None
    if is_site(origin.replace("//*.", "//", 1)):
        return Message(
            "This would be anyone's site. Name the domain as well, like https://*.example.org."
        )
    return Message(
        "Give a site like https://blog.example.org, in small letters and without a path."
    )


def recorded_access(video: Video) -> VideoAccess:
    """Return the recorded access to a video."""
    access = access_of(audience_of(video))
    return replace(access, embed_origins=tuple(video.embed_origins))


def access_of(audience: Audience) -> VideoAccess:
    """Return an audience as access, without sites."""
    rights = {
        holder_id: Right.EDIT if holder_id in audience.editor_ids else Right.WATCH
        for holder_id in audience.admitted_ids
    }
    return VideoAccess(
        visibility=audience.visibility,
        signed_in_only=audience.signed_in_only,
        has_public_page=audience.has_public_page,
        shares=shares_of(rights),
        unlock_id=audience.unlock_id,
    )


def audience_with(access: VideoAccess, owner_id: UUID | None) -> Audience:
    """Return the audience that access describes, of something that this account owns."""
    return Audience(
        visibility=access.visibility,
        signed_in_only=access.signed_in_only,
        owner_id=owner_id,
        admitted_ids=frozenset(share.holder_id for share in access.shares),
        editor_ids=frozenset(
            share.holder_id for share in access.shares if share.right is Right.EDIT
        ),
        unlock_id=access.unlock_id,
        has_public_page=access.has_public_page,
    )


async def save_access(
    video_id: UUID,
    access: VideoAccess,
    *,
    versions: Collection[str] | None,
    keeps_shares: bool = False,
    password: PasswordChange | None = None,
) -> Video:
    """Replace the access to a video, if the recorded one has one of these versions; None for any.

    With `keeps_shares` the recorded shares stay, whatever `access` has. The password stays unless
    `password` changes it, and ends when the video is no longer private. The caller has checked
    that the accounts and groups exist, and that the person may do this.

    Raises:
        AccessChanged: another version is recorded that differs from the change.
        VideoNotFound: the video was deleted.
    """
    async with transaction():
        video = await locked_video(video_id)
        present = recorded_access(video)
        if keeps_shares:
            access = replace(access, shares=present.shares)
        access = with_password(access, present.unlock_id, password)
        if access != present:
            check_version(present.version, versions, AccessChanged)
        await _record_access(video, access, password)
    return video


async def merge_access(
    video_id: UUID, mine: VideoAccess, *, base: Values, password: PasswordChange | None = None
) -> tuple[Video, Merged]:
    """Merge and write a change of `base`. Return the video and the result of the merge.

    A change of the password replaces any other one. Nothing is written if there are conflicts.
    Raises `VideoNotFound` if the video was deleted.
    """
    async with transaction():
        video = await locked_video(video_id)
        theirs = recorded_access(video)
        merged = merge(MERGED_FIELDS, base=base, mine=_parts(mine), theirs=_parts(theirs))
        if not merged.conflicts:
            access = with_password(merged_access(merged), theirs.unlock_id, password)
            await _record_access(video, access, password)
    return video, merged


def merged_access(merged: Merged) -> VideoAccess:
    """Return the access that results from a merge."""
    visibility, signed_in_only, has_public_page = merged.values["visibility"]
    return VideoAccess(
        visibility=Visibility(visibility),
        signed_in_only=signed_in_only,
        has_public_page=has_public_page,
        embed_origins=merged.values["embed_origins"],
        shares=merged.values["shares"],
    )


def _parts(access: VideoAccess) -> Values:
    return mergeable(
        access.visibility.value,
        access.embed_origins,
        access.shares,
        signed_in_only=access.signed_in_only,
        has_public_page=access.has_public_page,
    )


def with_password(
    access: VideoAccess, present_id: UUID | None, password: PasswordChange | None
) -> VideoAccess:
    """Return access with the password of `present_id`, or a changed one.

    Only what is private has a password or a public page.
    """
    if access.visibility is not Visibility.PRIVATE:
        return replace(access, unlock_id=None, has_public_page=False)
    if password is None:
        return replace(access, unlock_id=present_id)
    return replace(access, unlock_id=uuid4() if password.hash else None)


async def _record_access(
    video: Video, access: VideoAccess, password: PasswordChange | None
) -> None:
    """Write access to a locked video and its event, unless it is recorded already."""
    present = recorded_access(video)
    if access == present:
        return
    audience = audience_with(access, video.owner_id)
    columns = {
        "visibility": access.visibility,
        "signed_in_only": access.signed_in_only,
        "has_public_page": access.has_public_page,
        "embed_origins": list(access.embed_origins),
        "admitted_ids": sorted(audience.admitted_ids),
        "editor_ids": sorted(audience.editor_ids),
        "unlock_id": access.unlock_id,
        "changed_at": datetime.now(UTC),
    }
    if access.unlock_id != present.unlock_id:
        columns["password_hash"] = password.hash if password and access.unlock_id else None
    if access.visibility is not present.visibility:
        # Programs change the visibility together with the metadata.
        columns["metadata_version"] = video.metadata_version + 1
    await Publication.filter(id=video.id).update(**columns)
    video.update_from_dict(columns)
    await record_action(
        AuditAction.ACCESS_CHANGED, video.id, detail=_access_detail(present, access)
    )


def _access_detail(before: VideoAccess, after: VideoAccess) -> dict[str, str]:
    """Return a change for the audit log: both visibilities, and the names of other fields."""
    old_fields = asdict(before)
    new_fields = asdict(after)
    old = old_fields.pop("visibility")
    new = new_fields.pop("visibility")
    detail = {"was": old.value, "visibility": new.value} if old is not new else {}
    return detail | changed_fields(old_fields, new_fields)
