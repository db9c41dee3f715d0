"""Accounts and groups by id and by name, for people who share videos with them."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from portal.database.connection import Row, fetch_rows
from portal.errors import FieldError, InvalidRequest
from portal.locale.messages import Message
from portal.text import shown

# People type a part of a name, and choose from the first ones.
MAX_SUGGESTIONS = 10

HOLDERS = """(
  SELECT id, 'account' AS kind, email AS name, name AS full_name, is_disabled FROM accounts
  UNION ALL
  SELECT id, 'group', name, '', false FROM groups
) AS holder"""
GUESTS = "SELECT id, 'guest', email, '' FROM guests"
COLUMNS = "id, kind, name, full_name"
BY_ID = f"""
SELECT * FROM (SELECT {COLUMNS} FROM {HOLDERS} UNION ALL {GUESTS}) AS anyone
WHERE id = ANY (%s) ORDER BY kind DESC, lower(name)
"""  # noqa: S608 - put together from constants
BY_NAME = f"SELECT {COLUMNS} FROM {HOLDERS} WHERE lower(name) = ANY (%s)"  # noqa: S608
SUGGESTIONS = f"""
SELECT {COLUMNS} FROM {HOLDERS}
WHERE NOT is_disabled
  AND (position(lower(%s) IN lower(name)) > 0 OR position(lower(%s) IN lower(full_name)) > 0)
ORDER BY kind DESC, lower(name) LIMIT %s
"""  # noqa: S608 - put together from constants


class HolderKind(StrEnum):
    """Kind of what a video can be shared with."""

    ACCOUNT = "account"
    GROUP = "group"
    GUEST = "guest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Account, group or guest that a video can be shared with.

    `name` is the name of a group, and otherwise an e-mail address. `full_name` is the name of the
    account's owner, if it has one.
    """

    id: UUID
    kind: HolderKind
    name: str
    full_name: str


async def fetch_holders(ids: Collection[UUID]) -> list[Holder]:
    """Return the accounts, groups and guests with these ids, ordered by kind and name.

    Removed ones are left out.
    """
    return _holders(await fetch_rows(BY_ID, list(ids))) if ids else []


async def find_by_names(names: Collection[str]) -> dict[str, Holder]:
    """Return accounts and groups by their names in small letters; unknown names are left out."""
    lowered = [name.strip().lower().replace("\0", "") for name in names]
    holders = _holders(await fetch_rows(BY_NAME, lowered)) if lowered else []
    return {holder.name.lower(): holder for holder in holders}


def split_names(text: str) -> list[str]:
    """Return the names in a text, which are divided by commas, semicolons or line feeds."""
    return [name.strip() for name in re.split(r"[,;\n]", text) if name.strip()]


async def match_names(names: Collection[str]) -> tuple[frozenset[UUID], list[str]]:
    """Return the ids of the accounts and groups with these names, and the unknown names."""
    holders = await find_by_names(names)
    unknown = [name for name in dict.fromkeys(names) if name.strip().lower() not in holders]
    return frozenset(holder.id for holder in holders.values()), unknown


async def require_names(names: Collection[str], *, pointer: str) -> frozenset[UUID]:
    """Return the ids of the accounts and groups with these names.

    Raises `InvalidRequest`, with a fault at this pointer for each unknown name.
    """
    ids, unknown = await match_names(names)
    if unknown:
        raise InvalidRequest([FieldError(pointer, unknown_name_fault(name)) for name in unknown])
    return ids


def unknown_name_fault(name: str) -> Message:
    """Return that no account and no group has a name, and the remedy."""
    return Message(
        "“%(name)s” is nobody here. Give the e-mail address of an account, or the name of a group.",
        name=shown(name),
    )


async def suggest(text: str) -> list[Holder]:
    """Return groups, and accounts that are not disabled, whose names contain a text.

    Capital letters don't matter. E-mail addresses count as names. At most `MAX_SUGGESTIONS` are
    returned, groups first, and none for an empty text. Guests are left out.
    """
    typed = text.strip().replace("\0", "")
    if not typed:
        return []
    return _holders(await fetch_rows(SUGGESTIONS, typed, typed, MAX_SUGGESTIONS))


def _holders(rows: Collection[Row]) -> list[Holder]:
    return [Holder(**{**row, "kind": HolderKind(row["kind"])}) for row in rows]
