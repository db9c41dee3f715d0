"""Who may do what: each role, each scope, and whose video it is."""

from itertools import product
from uuid import uuid4

import pytest

from portal.accounts.permissions import ANYONE, EVERYONES, Action, Principal
from portal.database.states import Role, Scope
from portal.errors import MissingScope, NotAllowed, NotSignedIn

OWN_ID, OTHERS_ID = uuid4(), uuid4()
# Every action, then whether it is allowed to the owner, admin, editor, viewer and to anyone.
ROLES = (*Role, None)
TABLE = {
    (Action.WATCH, "own"): (True, True, True, True, True),
    (Action.WATCH, "others"): (True, True, True, True, True),
    (Action.PUBLISH, "own"): (True, True, True, False, False),
    (Action.EDIT, "own"): (True, True, True, False, False),
    (Action.EDIT, "others"): (True, True, False, False, False),
    (Action.EDIT, "nobodys"): (True, True, False, False, False),
    (Action.DELETE, "own"): (True, True, True, False, False),
    (Action.DELETE, "others"): (True, True, False, False, False),
    (Action.DELETE, "nobodys"): (True, True, False, False, False),
    (Action.ADMINISTER, "own"): (True, True, False, False, False),
}
NEEDED = {
    Action.WATCH: Scope.READ,
    Action.PUBLISH: Scope.WRITE,
    Action.EDIT: Scope.WRITE,
    Action.DELETE: Scope.DELETE,
    Action.ADMINISTER: Scope.ADMIN,
}
OWNERS = {"own": OWN_ID, "others": OTHERS_ID, "nobodys": None}
CELLS = [
    (role, action, whose, allowed)
    for (action, whose), cells in TABLE.items()
    for role, allowed in zip(ROLES, cells, strict=True)
]


def principal(role: Role | None, scopes: frozenset[Scope] | None = None) -> Principal:
    return Principal(account_id=role and OWN_ID, role=role, scopes=scopes)


@pytest.mark.parametrize(("role", "action", "whose", "allowed"), CELLS)
def test_role_may_do_what_the_table_says(
    role: Role | None, action: Action, whose: str, allowed: bool
) -> None:
    assert principal(role).may(action, owner_id=OWNERS[whose]) is allowed


@pytest.mark.parametrize(("role", "action", "whose", "allowed"), CELLS)
def test_token_may_do_what_its_role_may_if_it_has_the_scope(
    role: Role | None, action: Action, whose: str, allowed: bool
) -> None:
    owner_id = OWNERS[whose]
    for scope in Scope:
        token = principal(role, frozenset({scope}))
        expected = allowed and scope is NEEDED[action]
        assert token.may(action, owner_id=owner_id) is expected, scope
    every = principal(role, frozenset(Scope))
    assert every.may(action, owner_id=owner_id) is allowed
    assert not principal(role, frozenset()).may(action, owner_id=owner_id)


def test_every_action_is_in_the_table() -> None:
    assert {action for action, _ in TABLE} == set(NEEDED) == set(Action)
    assert {action: action.scope for action in Action} == NEEDED


def test_refusal_says_what_is_missing() -> None:
    with pytest.raises(NotSignedIn):
        ANYONE.require(Action.PUBLISH)
    with pytest.raises(NotAllowed, match="role"):
        principal(Role.VIEWER).require(Action.PUBLISH)
    # No scope stands in for a role, nor is one asked for that would not help.
    with pytest.raises(NotAllowed) as not_allowed:
        principal(Role.VIEWER, frozenset()).require(Action.PUBLISH)
    assert not isinstance(not_allowed.value, MissingScope)
    with pytest.raises(NotAllowed, match="published this video"):
        principal(Role.EDITOR).require(Action.EDIT, owner_id=OTHERS_ID)
    for action, scope in NEEDED.items():
        lacking = principal(Role.OWNER, frozenset(Scope) - {scope})
        with pytest.raises(MissingScope, match=scope) as refused:
            lacking.require(action, owner_id=OWN_ID)
        assert refused.value.extensions == {"missingScope": scope}


def test_on_an_open_portal_everyone_may_do_everything() -> None:
    for action, owner_id in product(Action, OWNERS.values()):
        assert EVERYONES.may(action, owner_id=owner_id)
    assert not EVERYONES.is_signed_in


@pytest.mark.parametrize("managed", Role)
def test_owners_are_managed_by_owners_alone(managed: Role) -> None:
    is_owner = managed is Role.OWNER
    expected = {Role.OWNER: True, Role.ADMIN: not is_owner, Role.EDITOR: False, Role.VIEWER: False}
    assert {role: principal(role).may_manage(managed) for role in Role} == expected
    assert EVERYONES.may_manage(managed)
    assert not ANYONE.may_manage(managed)
    assert not principal(Role.OWNER, frozenset({Scope.WRITE})).may_manage(managed)
