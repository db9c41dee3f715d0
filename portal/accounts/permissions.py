"""Who may do what: roles, scopes, and whose video it is. Pure."""

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from portal.database.account_models import Role, Scope
from portal.database.models import Visibility
from portal.errors import MissingScope, NotAllowed, NotSignedIn


class Action(Enum):
    """What may be done, and the scope that an API token needs for it."""

    WATCH = Scope.READ
    PUBLISH = Scope.WRITE
    # It needs the scope to write, too; an enum takes members of equal value for one.
    EDIT = "edit"
    DELETE = Scope.DELETE
    ADMINISTER = Scope.ADMIN

    @property
    def scope(self) -> Scope:
        return Scope.WRITE if self is Action.EDIT else Scope(self.value)


# What is done to a video; editors may do it to their own.
TO_A_VIDEO = frozenset({Action.EDIT, Action.DELETE})
_EVERYTHING = frozenset(Action)
ALLOWED = {
    Role.OWNER: _EVERYTHING,
    Role.ADMIN: _EVERYTHING,
    Role.EDITOR: _EVERYTHING - {Action.ADMINISTER},
    Role.VIEWER: frozenset({Action.WATCH}),
    None: frozenset({Action.WATCH}),
}


def usable_scopes(role: Role | None) -> tuple[Scope, ...]:
    """Return the scopes with which a token of an account with this role can do anything."""
    usable = {action.scope for action in ALLOWED[role]}
    return tuple(scope for scope in Scope if scope in usable)


@dataclass(frozen=True, slots=True)
class Audience:
    """Who may see a video: its owner, and whom its visibility lets see it.

    With `signed_in_only` a private one is for everyone with an account.
    """

    visibility: Visibility = Visibility.PRIVATE
    signed_in_only: bool = False
    owner_id: UUID | None = None

    @property
    def is_private(self) -> bool:
        return self.visibility is Visibility.PRIVATE


# Of a video that is not there, or that nobody else is to know of.
NOBODY_ELSE = Audience()


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever sent a request. Without an account it is anyone, who has a role on an open portal.

    `scopes` are an API token's; None is a person, who may do all that the role may.
    """

    account_id: UUID | None = None
    role: Role | None = None
    email: str = ""
    scopes: frozenset[Scope] | None = None
    session_id: UUID | None = None
    # Of the API token, if it is a program's.
    token_id: UUID | None = None
    token_name: str = ""

    @property
    def is_signed_in(self) -> bool:
        """Whether this is a person in a browser."""
        return self.session_id is not None

    def may(self, action: Action, *, owner_id: UUID | None = None) -> bool:
        """Whether the action is allowed; to a video, if it is one, of this owner."""
        try:
            self.require(action, owner_id=owner_id)
        except (NotSignedIn, NotAllowed):
            return False
        return True

    def require(self, action: Action, *, owner_id: UUID | None = None) -> None:
        """Raise `NotSignedIn`, `NotAllowed` or `MissingScope` unless the action is allowed."""
        if action not in ALLOWED[self.role]:
            raise NotAllowed if self.role else NotSignedIn
        if self.scopes is not None and action.scope not in self.scopes:
            raise MissingScope(action.scope)
        is_others = action in TO_A_VIDEO and owner_id != self.account_id
        if is_others and self.role is Role.EDITOR:
            words = "Only the person who published this video, an admin or an owner may do this."
            raise NotAllowed(words)

    @property
    def sees_all(self) -> bool:
        """Whether every video is there for them, whoever published it."""
        return self.role in (Role.OWNER, Role.ADMIN)

    def may_see(self, audience: Audience) -> bool:
        """Whether a video with this audience is there for them.

        Whether an API token is for watching at all is another question: that of its scopes.
        """
        if not audience.is_private or self.sees_all or self._owns(audience):
            return True
        return audience.signed_in_only and self.role is not None

    def may_list(self, audience: Audience) -> bool:
        """Whether lists show them a video with this audience.

        `videos.library.listed_for` is the same rule in SQL.
        """
        if audience.visibility is Visibility.UNLISTED:
            return self.sees_all or self._owns(audience)
        return self.may_see(audience)

    def _owns(self, audience: Audience) -> bool:
        return self.account_id is not None and self.account_id == audience.owner_id

    def may_manage(self, role: Role) -> bool:
        """Whether accounts of this role may be made and changed: owners' by owners alone."""
        is_theirs = role is not Role.OWNER or self.role is Role.OWNER
        return is_theirs and self.may(Action.ADMINISTER)


# Nobody in particular.
ANYONE = Principal()
# Whoever may do everything without an account: anyone on a portal that has none, and whoever may
# run its commands.
EVERYONES = Principal(role=Role.OWNER)
