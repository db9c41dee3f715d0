"""What the templates see of accounts: who asks, sessions, tokens, people."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from portal.accounts.permissions import Action, Principal
from portal.accounts.sessions import SessionView
from portal.database.account_models import Account, ApiToken, OneTimeLink
from portal.database.states import Role, Scope
from portal.errors import TokenRefused, Unavailable
from portal.text import shown, whole_number
from portal.web.auth import principal
from portal.web.composition import web_context
from portal.web.errors import DATABASE_ERRORS
from portal.web.pages.embedding import public_url
from portal.web.pages.formatting import Moment, moment
from portal.web.pages.quota_views import QuotaView

ROLE_WORDS = {
    Role.OWNER: "Owner: everything, owners' accounts included",
    Role.ADMIN: "Admin: people, and all videos",
    Role.EDITOR: "Editor: publishes, edits and deletes own videos",
    Role.VIEWER: "Viewer: signs in to watch",
}
SCOPE_WORDS = {
    Scope.READ: "Read videos",
    Scope.WRITE: "Publish and edit videos",
    Scope.DELETE: "Delete videos",
    Scope.ADMIN: "Read the audit log",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who looks at a page, as far as that changes what all pages show."""

    is_open: bool
    is_signed_in: bool
    account_id: str
    email: str
    may_publish: bool
    may_administer: bool
    has_single_sign_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A place where the account is signed in."""

    id: str
    device: str
    address: str
    seen: Moment
    is_this: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenForm:
    """What was typed to make an API token; `days` is empty for one that never runs out."""

    name: str = ""
    scopes: tuple[str, ...] = ()
    days: str = ""

    @property
    def life_days(self) -> int | None:
        """For how long, if not for ever; 0 for what is no number."""
        return (whole_number(self.days, max_digits=6) or 0) if self.days else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """An API token, without what it is."""

    id: str
    name: str
    scopes: str
    created: Moment
    used: Moment | None
    expires: Moment | None
    has_expired: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRow:
    """An account, as who administers it sees it."""

    id: str
    email: str
    name: str
    role: str
    is_disabled: bool
    has_password: bool
    is_self: bool
    may_change: bool
    seen: Moment | None
    quota_words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationRow:
    """An invitation that nobody has accepted yet."""

    id: str
    role: str
    expires: Moment


async def current_viewer() -> Viewer | None:
    """Who looks at this page; None where that can't be found out, as in an error's."""
    try:
        found = await principal()
    except (TokenRefused, Unavailable, *DATABASE_ERRORS):
        return None
    return Viewer(
        is_open=found.account_id is None and found.role is not None,
        is_signed_in=found.is_signed_in,
        account_id=str(found.account_id or ""),
        email=shown(found.email),
        may_publish=found.may(Action.PUBLISH),
        may_administer=found.is_signed_in and found.may(Action.ADMINISTER),
        has_single_sign_on=web_context().provider is not None,
    )


def session_rows(found: Sequence[SessionView]) -> list[SessionRow]:
    """As the account's page lists them."""
    return [
        SessionRow(
            id=str(it.id),
            device=shown(device_words(it.device)),
            address=it.address,
            seen=moment(it.seen_at),
            is_this=it.is_this,
        )
        for it in found
    ]


def token_rows(found: Sequence[ApiToken]) -> list[TokenRow]:
    """As the account's page lists them."""
    return [
        TokenRow(
            id=str(it.id),
            name=shown(it.name),
            scopes=", ".join(it.scopes),
            created=moment(it.created_at),
            used=moment(it.used_at) if it.used_at else None,
            expires=moment(it.expires_at) if it.expires_at else None,
            has_expired=it.expires_at is not None and it.expires_at <= datetime.now(UTC),
        )
        for it in found
    ]


def scope_choices(person: Principal) -> dict[str, str]:
    """The scopes whose tokens could do something for this person, with words for each."""
    own = {action.scope for action in Action if person.may(action, owner_id=person.account_id)}
    return {scope.value: words for scope, words in SCOPE_WORDS.items() if scope in own}


def first_call(secret: str, scopes: Collection[str]) -> str:
    """A command that uses a new token, within its scopes."""
    token = f"curl -H 'Authorization: Bearer {secret}'"
    if Scope.WRITE not in scopes:
        path = "/api/videos/VIDEO_ID" if Scope.ADMIN not in scopes else "/audit.jsonl"
        return f"{token} {public_url(path)}"
    body = '{"fileName": "film.mp4", "contentType": "video/mp4"}'
    return f"{token} --json '{body}' {public_url('/api/videos/presign')}"


def person_rows(
    found: Sequence[Account], *, by: Principal, quotas: Mapping[UUID, QuotaView]
) -> list[PersonRow]:
    """As the page of people lists them."""
    return [
        PersonRow(
            id=str(it.id),
            email=shown(it.email),
            name=shown(it.name),
            role=it.role.value,
            is_disabled=it.is_disabled,
            has_password=it.password_hash is not None,
            is_self=it.id == by.account_id,
            may_change=by.may_manage(it.role),
            seen=moment(it.seen_at) if it.seen_at else None,
            quota_words=quotas[it.id].words if it.id in quotas else (),
        )
        for it in found
    ]


def invitation_rows(found: Sequence[OneTimeLink]) -> list[InvitationRow]:
    """As the page of people lists them."""
    return [
        InvitationRow(
            id=str(it.id), role=(it.role or Role.VIEWER).value, expires=moment(it.expires_at)
        )
        for it in found
    ]


def device_words(user_agent: str) -> str:
    """A browser's and a system's name out of what it calls itself; its own words otherwise."""
    browsers = {"Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome"}
    browsers["Safari/"] = "Safari"
    systems = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows"}
    systems |= {"Mac OS X": "Mac", "CrOS": "ChromeOS", "Linux": "Linux"}
    browser = next((name for sign, name in browsers.items() if sign in user_agent), "")
    system = next((name for sign, name in systems.items() if sign in user_agent), "")
    return " on ".join(filter(None, (browser, system))) or user_agent or "Unknown"
