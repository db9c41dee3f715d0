"""Accounts and groups by id and by name, for people who share videos with them."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from portal.database.connection import Row, fetch_rows

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
    wanted = [name.strip().lower().replace("\0", "") for name in names]
    holders = _holders(await fetch_rows(BY_NAME, wanted)) if wanted else []
    return {holder.name.lower(): holder for holder in holders}


async def suggest(text: str) -> list[Holder]:
    """Return up to `MAX_SUGGESTIONS` enabled accounts and groups whose name contains a text."""
    typed = text.strip().replace("\0", "")
    if not typed:
        return []
    return _holders(await fetch_rows(SUGGESTIONS, typed, typed, MAX_SUGGESTIONS))


def _holders(rows: Collection[Row]) -> list[Holder]:
    return [Holder(**{**row, "kind": HolderKind(row["kind"])}) for row in rows]
