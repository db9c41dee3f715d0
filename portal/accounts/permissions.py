"""Rules of permissions by role, scope and owner, as pure functions."""

from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from portal.database.account_models import Role, Scope
from portal.database.models import Visibility
from portal.errors import MissingScope, NotAllowed, NotSignedIn
from portal.locale.messages import Message


class Action(Enum):
    """Kind of action on a portal; its value is the scope that an API token needs for it."""

    WATCH = Scope.READ
    PUBLISH = Scope.WRITE
    # An enum merges members of equal values, so EDIT has no scope as its value; see `scope`.
    EDIT = "edit"
    DELETE = Scope.DELETE
    ADMINISTER = Scope.ADMIN

    @property
    def scope(self) -> Scope:
        """Return the scope that an API token needs for the action."""
        return Scope.WRITE if self is Action.EDIT else Scope(self.value)


# Actions on one video, which editors may do to their own videos only.
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
    """Return the scopes that permit any action to a token of an account with this role."""
    usable = {action.scope for action in ALLOWED[role]}
    return tuple(scope for scope in Scope if scope in usable)


@dataclass(frozen=True, slots=True)
class Audience:
    """Viewers of a video, by its visibility and its owner.

    With `signed_in_only` everyone with an account may see a private video.
    """

    visibility: Visibility = Visibility.PRIVATE
    signed_in_only: bool = False
    owner_id: UUID | None = None

    @property
    def is_private(self) -> bool:
        """Return whether the visibility is private."""
        return self.visibility is Visibility.PRIVATE


# Audience of a video that doesn't exist, or must look like that.
NOBODY_ELSE = Audience()


@dataclass(frozen=True, slots=True)
class Principal:
    """Sender of a request.

    Without an account it is an anonymous visitor, who has a role on an open portal. `scopes` are
    those of an API token; None stands for a person, who has all permissions of the role.
    """

    account_id: UUID | None = None
    role: Role | None = None
    email: str = ""
    scopes: frozenset[Scope] | None = None
    session_id: UUID | None = None
    # The API token of a program.
    token_id: UUID | None = None
    token_name: str = ""
    # Code of the language that the person chose; empty without a choice.
    language: str = field(default="", compare=False)

    @property
    def is_signed_in(self) -> bool:
        """Return whether this is a person with a browser session."""
        return self.session_id is not None

    def may(self, action: Action, *, owner_id: UUID | None = None) -> bool:
        """Return whether the action is allowed, for an action on a video with this owner."""
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
            raise NotAllowed(
                Message(
                    "Only the person who published this video, an admin or an owner may do this."
                )
            )

    @property
    def sees_all(self) -> bool:
        """Return whether the role may see the videos of all owners."""
        return self.role in (Role.OWNER, Role.ADMIN)

    def may_see(self, audience: Audience) -> bool:
        """Return whether the principal may see a video with this audience.

        The scopes of an API token are checked separately, by `may` and `require`.
        """
        if not audience.is_private or self.sees_all or self._owns(audience):
            return True
        return audience.signed_in_only and self.role is not None

    def may_list(self, audience: Audience) -> bool:
        """Return whether the principal's lists include a video with this audience.

        `videos.library.listed_for` is the same rule in SQL.
        """
        if audience.visibility is Visibility.UNLISTED:
            return self.sees_all or self._owns(audience)
        return self.may_see(audience)

    def _owns(self, audience: Audience) -> bool:
        return self.account_id is not None and self.account_id == audience.owner_id

    def may_manage(self, role: Role) -> bool:
        """Return whether the principal may change accounts of this role; owners need an owner."""
        if role is Role.OWNER and self.role is not Role.OWNER:
            return False
        return self.may(Action.ADMINISTER)


# Anonymous visitor of a portal with accounts.
ANYONE = Principal()
# Principal with every permission: visitors of a portal without accounts, and operators.
EVERYONES = Principal(role=Role.OWNER)
