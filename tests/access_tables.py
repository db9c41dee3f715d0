"""The tables of docs/access.md, made from the code: `.venv/bin/python tests/access_tables.py`.

Run as a program it writes them into the page; a test compares them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from quart import Quart

from portal.accounts.permissions import ANYONE, EVERYONES, Audience, Principal
from portal.config import Config
from portal.database.states import Role, Scope, Visibility
from portal.errors import NotSignedIn, PortalError, UploadNotIssued
from portal.web.app import create_app
from portal.web.auth import ACTIONS, FOR_PEOPLE, Policy, declared_policy

PAGE = Path(__file__).parent.parent / "docs" / "access.md"
COMMAND = ".venv/bin/python tests/access_tables.py"
SETTINGS = {"DATABASE_URL": "postgresql://portal@db/portal", "S3_ENDPOINT_URL": "http://s3:9000"}
OWN, OTHERS, SESSION = UUID(int=1), UUID(int=2), UUID(int=3)
# Whose the video or upload is that something is done to makes a difference to these.
WITH_VIDEOS = (Role.EDITOR, Role.ADMIN, Role.OWNER)

AUDIENCES = {
    "public": Audience(Visibility.PUBLIC),
    "unlisted": Audience(Visibility.UNLISTED),
    "private": Audience(Visibility.PRIVATE),
    "private, for everyone with an account": Audience(Visibility.PRIVATE, signed_in_only=True),
}


def tables(app: Quart) -> dict[str, str]:
    """Each table by the name that its marks in the page have."""
    return {
        "policies": _table(("policy", "lets through"), policies()),
        "matrix": _table(("who", *(f"`{it.name}`" for it in Policy)), matrix()),
        "visibility": _table(("who", *AUDIENCES), visibility()),
        "routes": _table(("route", "policy"), routes(app)),
    }


def policies() -> Iterator[tuple[str, ...]]:
    """What each policy asks, in its own words."""
    for policy in Policy:
        yield f"`{policy.name}`", policy.value


def matrix() -> Iterator[tuple[str, ...]]:
    """Who is let through by which policy."""
    for words, principal, owner_id in who():
        yield words, *(outcome(policy, principal, owner_id) for policy in Policy)


def visibility() -> Iterator[tuple[str, ...]]:
    """For whom a video of each audience is there, where the policy is `WATCH` or `PLAY`."""
    for words, principal, owner_id in watchers():
        found = (replace(audience, owner_id=owner_id) for audience in AUDIENCES.values())
        yield words, *("yes" if principal.may_see(it) else "404" for it in found)


def watchers() -> Iterator[tuple[str, Principal, UUID | None]]:
    """Everyone who may ask for a video, in words, and whose it is."""
    yield "anyone, on a portal without accounts", EVERYONES, None
    yield "nobody signed in, on a portal with accounts", ANYONE, OTHERS
    yield "viewer, or a viewer's token", person(Role.VIEWER), OTHERS
    yield "editor, of what is their own", person(Role.EDITOR), OWN
    yield "editor, of what is another's", person(Role.EDITOR), OTHERS
    yield "admin", person(Role.ADMIN), OTHERS
    yield "owner", person(Role.OWNER), OTHERS


def who() -> Iterator[tuple[str, Principal, UUID | None]]:
    """Everyone who may ask, in words, and whose the video or upload is."""
    yield "anyone, on a portal without accounts", EVERYONES, None
    yield "nobody signed in, on a portal with accounts", ANYONE, OTHERS
    yield Role.VIEWER.value, person(Role.VIEWER), OTHERS
    for role in WITH_VIDEOS:
        yield f"{role}, of what is their own", person(role), OWN
        yield f"{role}, of what is another's", person(role), OTHERS
    for scope in Scope:
        program = Principal(account_id=OWN, role=Role.OWNER, scopes=frozenset({scope}))
        yield f"an owner's token with `{scope}`", program, OWN


def person(role: Role) -> Principal:
    """Someone of a role who is signed in."""
    return Principal(account_id=OWN, role=role, session_id=SESSION)


def outcome(policy: Policy, principal: Principal, owner_id: UUID | None) -> str:
    """`yes`, or the status of the refusal."""
    try:
        require(policy, principal, owner_id)
    except PortalError as exc:
        return str(exc.status)
    return "yes"


def require(policy: Policy, principal: Principal, owner_id: UUID | None) -> None:
    """As `web.auth` enforces a policy."""
    if policy in FOR_PEOPLE and not principal.is_signed_in:
        raise NotSignedIn
    if policy is Policy.AUDIT and principal.account_id is None:
        raise NotSignedIn
    if policy in ACTIONS:
        principal.require(ACTIONS[policy], owner_id=owner_id)
    if policy is Policy.OWN_UPLOAD and owner_id != principal.account_id:
        raise UploadNotIssued


def routes(app: Quart) -> Iterator[tuple[str, ...]]:
    """Each method of each address, and its policy."""
    found = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method, rule.endpoint)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    for path, method, endpoint in sorted(found):
        policy = declared_policy(app, endpoint)
        yield f"`{method} {path}`", f"`{policy.name}`" if policy else "none: refused"


def written(page: str, found: dict[str, str]) -> str:
    """The page with these tables between their marks."""
    for name, table in found.items():
        begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
        before, mark, rest = page.partition(begin)
        assert mark, begin
        _, mark, after = rest.partition(end)
        assert mark, end
        page = f"{before}{begin}\n{table}\n{end}{after}"
    return page


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    made = tables(create_app(Config.from_env(SETTINGS)))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
