"""Groups of accounts, which videos can be shared with.

Admins choose the members of a group. A group with a claim follows single sign-on instead: accounts
enter and leave it as they sign in, by the values of the provider's claim `OIDC_ROLE_CLAIM`.
"""

import hashlib
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

from tortoise.exceptions import IntegrityError

from portal.accounts.people import plain_email
from portal.database.account_models import MAX_NAME_LENGTH, Account, Group, GroupMember
from portal.database.connection import execute, fetch_rows, transaction
from portal.errors import FieldError, GroupExists, GroupNotFound, InvalidRequest, MembersChanged
from portal.events.log import AuditAction, record_action
from portal.locale.messages import Message
from portal.text import is_blank

MAX_GROUPS = 1_000
MAX_MEMBERS = 5_000
MAX_CLAIM_LENGTH = 200
# Accounts that a page suggests as members.
MAX_CANDIDATES = 500

SUMMARY = """
SELECT id, name, claim, (SELECT count(*) FROM group_members WHERE group_id = groups.id) AS members
FROM groups
"""
LIST = f"{SUMMARY} ORDER BY lower(name)"
READ = f"{SUMMARY} WHERE id = %s"
LOCK = "SELECT FROM groups WHERE id = %s FOR UPDATE"
# Sorted as Python sorts, whatever the collation of the database.
MEMBERS = """
SELECT email FROM accounts JOIN group_members ON account_id = accounts.id
WHERE group_id = %s ORDER BY email COLLATE "C"
"""
CANDIDATES = """
SELECT email FROM accounts
WHERE id NOT IN (SELECT account_id FROM group_members WHERE group_id = %s)
ORDER BY email LIMIT %s
"""
REMOVE_OTHERS = "DELETE FROM group_members WHERE group_id = %s AND account_id <> ALL (%s)"
# Leaves out accounts that are removed at the same time.
ADD_MEMBERS = """
INSERT INTO group_members (group_id, account_id)
SELECT %s, id FROM accounts WHERE id = ANY (%s) FOR KEY SHARE
ON CONFLICT DO NOTHING
"""
LEAVE = """
DELETE FROM group_members USING groups
WHERE account_id = %s AND groups.id = group_id AND claim <> '' AND claim <> ALL (%s)
"""
ENTER = """
INSERT INTO group_members (account_id, group_id)
SELECT %s, id FROM groups WHERE claim <> '' AND claim = ANY (%s)
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """Group with the number of its members. `claim` is empty unless it follows single sign-on."""

    id: UUID
    name: str
    claim: str
    members: int


@dataclass(frozen=True, slots=True)
class Members:
    """E-mail addresses of a group's members, in their order."""

    emails: Sequence[str]

    @property
    def version(self) -> str:
        """Return the version of the members: a digest that changes with their addresses."""
        return hashlib.blake2b("\n".join(self.emails).encode(), digest_size=12).hexdigest()


async def list_groups() -> list[GroupSummary]:
    """Return all groups, ordered by name."""
    return [GroupSummary(**row) for row in await fetch_rows(LIST)]


async def get(group_id: UUID) -> GroupSummary:
    """Return a group. Raises `GroupNotFound`."""
    rows = await fetch_rows(READ, group_id)
    if not rows:
        raise GroupNotFound
    return GroupSummary(**rows[0])


async def create(name: str, *, claim: str = "") -> Group:
    """Create a group without members.

    Raises `InvalidRequest` for an invalid name or claim, and `GroupExists` for a name that is used.
    """
    name, claim = _checked(name, claim)
    async with _naming():
        if await Group.all().count() >= MAX_GROUPS:
            message = Message(
                "This portal has %(limit)s groups, the most it can have. Remove one first.",
                limit=MAX_GROUPS,
            )
            raise InvalidRequest([FieldError("/name", message)])
        group = await Group.create(id=uuid4(), name=name, claim=claim)
        await record_action(AuditAction.GROUP_MADE, group.id, name=group.name)
        return group


async def change(group_id: UUID, *, name: str | None = None, claim: str | None = None) -> None:
    """Change the name or the claim of a group, or both.

    Raises as `create`, and `GroupNotFound`.
    """
    async with _naming():
        group = await _locked(group_id)
        name, claim = _checked(
            group.name if name is None else name, group.claim if claim is None else claim
        )
        if (group.name, group.claim) != (name, claim):
            await Group.filter(id=group_id).update(name=name, claim=claim)
            await record_action(AuditAction.GROUP_CHANGED, group_id, name=name)


async def remove(group_id: UUID) -> None:
    """Remove a group, whose members then no longer see what only it could see.

    Raises `GroupNotFound`.
    """
    async with transaction():
        group = await _locked(group_id)
        await Group.filter(id=group_id).delete()
        await record_action(AuditAction.GROUP_REMOVED, group_id, name=group.name)


async def read_members(group_id: UUID) -> Members:
    """Return the members of a group. Raises `GroupNotFound`."""
    await get(group_id)
    return Members([row["email"] for row in await fetch_rows(MEMBERS, group_id)])


async def list_candidates(group_id: UUID) -> list[str]:
    """Return e-mail addresses of accounts that are not in a group, at most `MAX_CANDIDATES`."""
    return [row["email"] for row in await fetch_rows(CANDIDATES, group_id, MAX_CANDIDATES)]


async def add_members(group_id: UUID, emails: Iterable[str]) -> None:
    """Add accounts to a group. Raises as `replace_members`, but no `MembersChanged`."""
    async with transaction():
        await _locked(group_id)
        present = await read_members(group_id)
        await replace_members(group_id, [*present.emails, *emails], versions=None)


async def remove_member(group_id: UUID, email: str) -> None:
    """Remove an account from a group, if it is a member. Raises as `add_members`."""
    async with transaction():
        await _locked(group_id)
        present = await read_members(group_id)
        remaining = [member for member in present.emails if member != plain_email(email)]
        await replace_members(group_id, remaining, versions=None)


async def replace_members(
    group_id: UUID, emails: Iterable[str], *, versions: Collection[str] | None
) -> Members:
    """Replace the members of a group, if they are of one of these versions; None for any version.

    Raises:
        GroupNotFound: the group was removed.
        InvalidRequest: an address is no account's, or the group follows single sign-on.
        MembersChanged: other members are recorded.
    """
    async with transaction():
        group = await _locked(group_id)
        present = await read_members(group_id)
        chosen = sorted({plain_email(email) for email in emails})
        if chosen == present.emails:
            return present
        if versions is not None and present.version not in versions:
            raise MembersChanged
        if group.claim:
            message = Message(
                "This group follows single sign-on. Empty its claim to choose members."
            )
            raise InvalidRequest([FieldError("/emails", message)])
        accounts = await _accounts_of(chosen)
        await execute(REMOVE_OTHERS, group_id, accounts)
        await execute(ADD_MEMBERS, group_id, accounts)
        detail = {
            "added": ", ".join(email for email in chosen if email not in present.emails),
            "removed": ", ".join(email for email in present.emails if email not in chosen),
        }
        await record_action(
            AuditAction.GROUP_MEMBERS_CHANGED, group_id, name=group.name, detail=detail
        )
        return Members(chosen)


async def follow(account_id: UUID, values: Collection[str]) -> None:
    """Add an account to the groups whose claim is one of these values, as single sign-on sent them.

    It is removed from all other groups with a claim. Groups without one stay as they are. Call this
    in the transaction of the sign-in.
    """
    await execute(LEAVE, account_id, list(values))
    await execute(ENTER, account_id, list(values))


async def any_follows() -> bool:
    """Return whether a group follows single sign-on."""
    return await Group.exclude(claim="").exists()


async def group_ids_of(account_ids: Collection[UUID]) -> dict[UUID, frozenset[UUID]]:
    """Return the ids of the groups that these accounts belong to, by account.

    An account without a group, or one that doesn't exist, has an empty set.
    """
    groups: dict[UUID, set[UUID]] = {account_id: set() for account_id in account_ids}
    for member in await GroupMember.filter(account_id__in=list(account_ids)):
        groups[member.account_id].add(member.group_id)
    return {account_id: frozenset(ids) for account_id, ids in groups.items()}


def _checked(name: str, claim: str) -> tuple[str, str]:
    """Return a group's name and claim without surplus spaces. Raises `InvalidRequest`."""
    faults = []
    if is_blank(name) or "\0" in name or len(name.strip()) > MAX_NAME_LENGTH:
        message = Message("Enter a name of 1 to %(limit)s characters.", limit=MAX_NAME_LENGTH)
        faults.append(FieldError("/name", message))
    elif "," in name or ";" in name:
        # People type several names in one field.
        message = Message("Leave out commas and semicolons, which divide names in lists.")
        faults.append(FieldError("/name", message))
    if "\0" in claim or len(claim.strip()) > MAX_CLAIM_LENGTH:
        message = Message("Shorten this to at most %(limit)s characters.", limit=MAX_CLAIM_LENGTH)
        faults.append(FieldError("/claim", message))
    if faults:
        raise InvalidRequest(faults)
    return " ".join(name.split()), claim.strip()


async def _locked(group_id: UUID) -> GroupSummary:
    """Return a group that no other transaction changes. Raises `GroupNotFound`."""
    await execute(LOCK, group_id)
    return await get(group_id)


@asynccontextmanager
async def _naming() -> AsyncIterator[None]:
    """Run the block, which names a group, in a transaction. Raises `GroupExists` for a used name.

    Names differ by more than their case, because people choose groups by typing.
    """
    try:
        async with transaction():
            yield
    except IntegrityError as exc:
        raise GroupExists from exc


async def _accounts_of(emails: Sequence[str]) -> list[UUID]:
    """Return the accounts with these e-mail addresses. Raises `InvalidRequest` for others."""
    if len(emails) > MAX_MEMBERS:
        message = Message("Name at most %(limit)s members.", limit=MAX_MEMBERS)
        raise InvalidRequest([FieldError("/emails", message)])
    ids = dict(await Account.filter(email__in=emails).values_list("email", "id"))
    if missing := [email for email in emails if email not in ids]:
        message = Message(
            "No account has the address %(email)s. Invite the person first.", email=missing[0]
        )
        raise InvalidRequest([FieldError("/emails", message)])
    return list(ids.values())
