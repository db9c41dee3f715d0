"""Permissions by role, scope and owner of the video."""

from itertools import product
from uuid import uuid4

import pytest

from portal.accounts.permissions import ANYONE, EVERYONES, Action, Audience, Principal
from portal.database.account_models import Role, Scope
from portal.errors import MissingScope, NotAllowed, NotSignedIn

OWN_ID = uuid4()
OTHERS_ID = uuid4()
OWNERS = {"own": OWN_ID, "others": OTHERS_ID, "nobodys": None}
# Every action, then whether it is allowed to the owner, admin, editor, contributor, viewer, anyone.
TABLE = {
    (Action.WATCH, "others"): (True, True, True, True, True, True),
    (Action.PUBLISH, "own"): (True, True, True, True, False, False),
    (Action.EDIT, "own"): (True, True, True, True, False, False),
    (Action.EDIT, "others"): (True, True, False, False, False, False),
    (Action.EDIT, "nobodys"): (True, True, False, False, False, False),
    (Action.DELETE, "own"): (True, True, True, True, False, False),
    (Action.DELETE, "others"): (True, True, False, False, False, False),
    (Action.DELETE, "nobodys"): (True, True, False, False, False, False),
    (Action.APPROVE, "others"): (True, True, True, False, False, False),
    (Action.ADMINISTER, "own"): (True, True, False, False, False, False),
}
NEEDED = {
    Action.WATCH: Scope.READ,
    Action.PUBLISH: Scope.WRITE,
    Action.EDIT: Scope.WRITE,
    Action.APPROVE: Scope.WRITE,
    Action.DELETE: Scope.DELETE,
    Action.ADMINISTER: Scope.ADMIN,
}


def principal(role: Role | None, scopes: frozenset[Scope] | None = None) -> Principal:
    return Principal(account_id=role and OWN_ID, role=role, scopes=scopes)


@pytest.mark.parametrize(("action", "whose"), TABLE)
def test_roles_and_scopes_permit_the_actions_of_the_table(action: Action, whose: str) -> None:
    audience = Audience(owner_id=OWNERS[whose])
    for role, allowed in zip((*Role, None), TABLE[action, whose], strict=True):
        assert principal(role).may(action, on=audience) is allowed
        assert principal(role, frozenset(Scope)).may(action, on=audience) is allowed
        assert not principal(role, frozenset()).may(action, on=audience)
        for scope in Scope:
            expected = allowed and scope is NEEDED[action]
            assert principal(role, frozenset({scope})).may(action, on=audience) is expected, scope
    assert EVERYONES.may(action, on=audience)


def test_refusal_names_the_missing_permission() -> None:
    with pytest.raises(NotSignedIn):
        ANYONE.require(Action.PUBLISH)
    # A missing role is reported as such, whatever the scopes: another scope would not help.
    for scopes in (None, frozenset[Scope]()):
        with pytest.raises(NotAllowed, match="role") as not_allowed:
            principal(Role.VIEWER, scopes).require(Action.PUBLISH)
        assert not isinstance(not_allowed.value, MissingScope)
    with pytest.raises(NotAllowed, match="published this video"):
        principal(Role.EDITOR).require(Action.EDIT, on=Audience(owner_id=OTHERS_ID))
    for action, scope in NEEDED.items():
        lacking = principal(Role.OWNER, frozenset(Scope) - {scope})
        with pytest.raises(MissingScope, match=scope) as refused:
            lacking.require(action, on=Audience(owner_id=OWN_ID))
        assert refused.value.extensions == {"missingScope": scope}


def test_only_owners_manage_owners() -> None:
    for role, managed in product(Role, Role):
        expected = role is Role.OWNER or (role is Role.ADMIN and managed is not Role.OWNER)
        assert principal(role).may_manage(managed) is expected
    for managed in Role:
        assert EVERYONES.may_manage(managed)
        assert not ANYONE.may_manage(managed)
        assert not principal(Role.OWNER, frozenset({Scope.WRITE})).may_manage(managed)
