"""Rules of permissions by role and scope, and of the audience of a video, in Python and in SQL.

Who may see a video now is decided here alone. A series has an audience of the same kind.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from uuid import UUID

from psycopg import sql

from portal.database.account_models import Role, Scope
from portal.database.connection import Row, sql_with
from portal.database.models import Video, Visibility
from portal.errors import MissingScope, NotAllowed, NotSignedIn
from portal.locale.messages import Message


class Action(Enum):
    """Kind of action on a portal; its value is the scope that an API token needs for it."""

    WATCH = Scope.READ
    PUBLISH = Scope.WRITE
    # An enum merges members of equal values, so these have no scope as their value; see `scope`.
    EDIT = "edit"
    APPROVE = "approve"
    DELETE = Scope.DELETE
    ADMINISTER = Scope.ADMIN

    @property
    def scope(self) -> Scope:
        """Return the scope that an API token needs for the action."""
        return Scope.WRITE if self in (Action.EDIT, Action.APPROVE) else Scope(self.value)


# Actions on one video. Editors and contributors may do them to their own videos. Editors may edit
# those shared with them, too.
TO_A_VIDEO = frozenset({Action.EDIT, Action.DELETE})
_EVERYTHING = frozenset(Action)
ALLOWED = {
    Role.OWNER: _EVERYTHING,
    Role.ADMIN: _EVERYTHING,
    Role.EDITOR: _EVERYTHING - {Action.ADMINISTER},
    Role.CONTRIBUTOR: _EVERYTHING - {Action.ADMINISTER, Action.APPROVE},
    Role.VIEWER: frozenset({Action.WATCH}),
    None: frozenset({Action.WATCH}),
}


def usable_scopes(role: Role | None) -> tuple[Scope, ...]:
    """Return the scopes that permit any action to a token of an account with this role."""
    usable = {action.scope for action in ALLOWED[role]}
    return tuple(scope for scope in Scope if scope in usable)


class Right(StrEnum):
    """What an account or a group may do with a video that is shared with it.

    Who may edit may also watch. Nobody gets more by it than the role of their account allows.
    """

    WATCH = "watch"
    EDIT = "edit"


@dataclass(frozen=True, slots=True)
class Audience:
    """Viewers and editors of a video, by visibility, owner, and people that it is shared with.

    With `signed_in_only` everyone with an account may see a private video. It is shared with the
    accounts and groups of `admitted_ids`. Those that are in `editor_ids`, too, may edit it. A
    private video with a password has an `unlock_id`, a secret of the browsers that know the
    password; the id changes with it. With `has_public_page` everyone may see the page of a private
    video: its title, description, categories, tags, duration and poster, but not the film. A
    pending video waits for approval, or was refused: it is private, and only its owner and the
    people who may approve see it.
    """

    visibility: Visibility = Visibility.PRIVATE
    signed_in_only: bool = False
    owner_id: UUID | None = None
    admitted_ids: frozenset[UUID] = frozenset()
    editor_ids: frozenset[UUID] = frozenset()
    unlock_id: UUID | None = None
    is_pending: bool = False
    has_public_page: bool = False

    @property
    def is_private(self) -> bool:
        """Return whether the visibility is private, or the video is pending."""
        return self.visibility is Visibility.PRIVATE or self.is_pending

    @property
    def is_locked(self) -> bool:
        """Return whether a password opens the video for others than its audience."""
        return self.is_private and self.unlock_id is not None and not self.is_pending


# Audience of a video that doesn't exist, or must look like that.
NOBODY_ELSE = Audience()


def audience_of(video: Video) -> Audience:
    """Return the audience of a video."""
    return Audience(
        visibility=video.visibility,
        signed_in_only=video.signed_in_only,
        owner_id=video.owner_id,
        admitted_ids=frozenset(video.admitted_ids),
        editor_ids=frozenset(video.editor_ids),
        unlock_id=video.unlock_id,
        is_pending=video.approval is not None,
        has_public_page=video.has_public_page,
    )


def audience_in(columns: Row) -> Audience:
    """Return the audience in columns of a row, or in JSON; the narrowest if there is none."""
    owner_id = columns.get("owner_id")
    unlock_id = columns.get("unlock_id")
    return Audience(
        visibility=Visibility(columns.get("visibility", Visibility.PRIVATE)),
        signed_in_only=columns.get("signed_in_only", False),
        owner_id=UUID(str(owner_id)) if owner_id else None,
        admitted_ids=_ids_in(columns.get("admitted_ids")),
        editor_ids=_ids_in(columns.get("editor_ids")),
        unlock_id=UUID(str(unlock_id)) if unlock_id else None,
        is_pending=columns.get("approval") is not None,
        has_public_page=columns.get("has_public_page", False),
    )


def _ids_in(column: Iterable[UUID | str] | None) -> frozenset[UUID]:
    return frozenset(UUID(str(holder_id)) for holder_id in column or ())


def is_private_in(columns: Row) -> bool:
    """Return whether columns of a row, or JSON, are of a private video, as `audience_in`."""
    return (
        columns.get("visibility", Visibility.PRIVATE) == Visibility.PRIVATE
        or columns.get("approval") is not None
    )


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
    # Groups that the account belongs to, and guests that the person is, with or without an account.
    group_ids: frozenset[UUID] = frozenset()
    # Ids of the videos and series that passwords opened in the browser (`Audience.unlock_id`).
    unlocked_ids: frozenset[UUID] = frozenset()
    # Code of the language that the person chose; empty without a choice.
    language: str = field(default="", compare=False)

    @property
    def is_signed_in(self) -> bool:
        """Return whether this is a person with a browser session."""
        return self.session_id is not None

    @property
    def ids(self) -> frozenset[UUID]:
        """Return the ids by which audiences admit the principal."""
        return self.group_ids | {self.account_id} if self.account_id else self.group_ids

    def may(self, action: Action, *, on: Audience = NOBODY_ELSE) -> bool:
        """Return whether the action is allowed, for an action on a video with this audience."""
        try:
            self.require(action, on=on)
        except (NotSignedIn, NotAllowed):
            return False
        return True

    def require(self, action: Action, *, on: Audience = NOBODY_ELSE) -> None:
        """Raise `NotSignedIn`, `NotAllowed` or `MissingScope` unless the action is allowed."""
        if action not in ALLOWED[self.role]:
            raise NotAllowed if self.role else NotSignedIn
        if self.scopes is not None and action.scope not in self.scopes:
            raise MissingScope(action.scope)
        if self.sees_all or action not in TO_A_VIDEO or self._owns(on):
            return
        if action is Action.DELETE or self.role is Role.CONTRIBUTOR:
            raise NotAllowed(
                Message(
                    "Only the person who published this video, an admin or an owner may do this."
                )
            )
        if not self.ids & on.editor_ids:
            raise NotAllowed(
                Message(
                    "Only the person who published this video, people with whom it is shared for "
                    "editing, an admin or an owner may do this."
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
        return self._is_in(audience) or (
            not audience.is_pending and audience.unlock_id in self.unlocked_ids
        )

    def may_see_page(self, audience: Audience) -> bool:
        """Return whether the principal may see the page of a video, perhaps without the film.

        `with_public_pages` is the same rule in SQL.
        """
        has_page = audience.is_private and audience.has_public_page and not audience.is_pending
        return has_page or self.may_see(audience)

    def may_list(self, audience: Audience) -> bool:
        """Return whether the principal's lists include a video with this audience.

        Who knows its password needs its address, too. `listed_for` is the same rule in SQL.
        """
        if audience.visibility is Visibility.UNLISTED and not audience.is_pending:
            return self.sees_all or self._is_named(audience)
        return self._is_in(audience)

    def _is_in(self, audience: Audience) -> bool:
        """Return whether the principal may see a video without its password."""
        if audience.is_pending:
            return self._owns(audience) or Action.APPROVE in ALLOWED[self.role]
        if not audience.is_private or self.sees_all or self._is_named(audience):
            return True
        return audience.signed_in_only and self.role is not None

    def _is_named(self, audience: Audience) -> bool:
        """Return whether the principal owns the video, or it is shared with them."""
        return self._owns(audience) or bool(self.ids & audience.admitted_ids)

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


def listed_for(reader: Principal) -> sql.Composable:
    """Return the condition for videos in a reader's lists: `Principal.may_list` in SQL.

    It names the columns of a video's audience without a table.
    """
    if reader.sees_all:
        return sql.SQL("true")
    conditions: list[sql.Composable] = [sql.SQL("visibility = 'public'")]
    if reader.role is not None:
        conditions.append(sql.SQL("visibility = 'private' AND signed_in_only"))
    if reader.ids:
        conditions.append(shared_with(reader, Right.WATCH))
    reasons = [sql_with("approval IS NULL AND ({any})", any=sql.SQL(" OR ").join(conditions))]
    if reader.account_id is not None:
        reasons.append(sql_with("owner_id = {id}", id=reader.account_id))
    if Action.APPROVE in ALLOWED[reader.role]:
        reasons.append(sql.SQL("approval IS NOT NULL"))
    return sql_with("({any})", any=sql.SQL(" OR ").join(reasons))


def visible_to(reader: Principal) -> sql.Composable:
    """Return the condition for videos that a reader may see: `Principal.may_see` in SQL."""
    reasons: list[sql.Composable] = [sql.SQL("visibility = 'unlisted'")]
    if reader.unlocked_ids:
        reasons.append(sql_with("unlock_id = ANY ({ids}::uuid[])", ids=list(reader.unlocked_ids)))
    return sql_with(
        "({listed} OR approval IS NULL AND ({any}))",
        listed=listed_for(reader),
        any=sql.SQL(" OR ").join(reasons),
    )


def with_public_pages(condition: sql.Composable) -> sql.Composable:
    """Return a condition for videos, widened to private ones whose page everyone may see.

    As `listed_for`, it names columns without a table.
    """
    is_public = sql.SQL("visibility = 'private' AND has_public_page AND approval IS NULL")
    return sql_with("({condition} OR {is_public})", condition=condition, is_public=is_public)


def editable_by(publisher: Principal) -> sql.Composable:
    """Return the condition for what someone who may publish may edit, as `Principal.may` says."""
    if publisher.sees_all:
        return sql.SQL("true")
    own = sql_with("owner_id = {id}", id=publisher.account_id)
    if publisher.role is Role.CONTRIBUTOR:
        return own
    return sql_with("({own} OR {shared})", own=own, shared=shared_with(publisher, Right.EDIT))


def shared_with(reader: Principal, right: Right) -> sql.Composable:
    """Return the condition for what is shared with a reader by name or by a group.

    It is shared with at least this right. Other reasons to see it don't count. As `listed_for`, the
    condition names columns without a table, and contains its values.
    """
    condition = "admitted_ids && {ids}::uuid[]"
    if right is Right.EDIT:
        # The index is of the ids of both rights.
        condition = f"({condition} AND editor_ids && {{ids}}::uuid[])"
    return sql_with(condition, ids=list(reader.ids))
