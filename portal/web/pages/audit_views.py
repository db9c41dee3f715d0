"""What the template of the audit log sees: lines as sentences, and the form to look for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from quart import url_for

from portal.accounts.audit import ActorKind, AuditAction
from portal.accounts.audit_log import AuditPage, AuditQuery
from portal.database.account_models import AuditEvent
from portal.text import shown
from portal.web.pages.formatting import Moment, moment

# For each action how the form calls it, and what is said of who did it; {} is the object.
WORDS: dict[str, tuple[str, str]] = {
    AuditAction.SIGNED_IN: ("Signing in", "signed in"),
    AuditAction.SIGN_IN_REFUSED: ("Failed sign-ins", "failed to sign in as {}"),
    AuditAction.SIGNED_OUT: ("Signing out", "signed out"),
    AuditAction.PASSWORD_CHANGED: ("New passwords", "chose a new password"),
    AuditAction.SESSION_ENDED: ("Sessions ended", "ended a session"),
    AuditAction.OTHER_SESSIONS_ENDED: ("Other sessions ended", "ended all other sessions"),
    AuditAction.LINK_MADE: ("Links for passwords", "made a link to choose a password for {}"),
    AuditAction.ACCOUNT_ADDED: ("Accounts added", "added the account {}"),
    AuditAction.ROLE_CHANGED: ("Roles changed", "changed the role of {}"),
    AuditAction.NAME_CHANGED: ("Names", "changed the name of {}"),
    AuditAction.ACCOUNT_DISABLED: ("Accounts disabled", "disabled {}"),
    AuditAction.ACCOUNT_ENABLED: ("Accounts enabled", "enabled {}"),
    AuditAction.ACCOUNT_REMOVED: ("Accounts removed", "removed {}"),
    AuditAction.ACCOUNT_BOUND: ("Single sign-on begun", "bound {} to single sign-on"),
    AuditAction.ACCOUNT_UNBOUND: ("Single sign-on ended", "unbound {} from single sign-on"),
    AuditAction.INVITATION_MADE: ("Invitations made", "made an invitation with the role {}"),
    AuditAction.INVITATION_ACCEPTED: (
        "Invitations accepted",
        "accepted an invitation with the role {}",
    ),
    AuditAction.INVITATION_REVOKED: (
        "Invitations revoked",
        "revoked an invitation with the role {}",
    ),
    AuditAction.TOKEN_MADE: ("API tokens made", "made the API token {}"),
    AuditAction.TOKEN_REVOKED: ("API tokens revoked", "revoked the API token {}"),
    AuditAction.VIDEO_PUBLISHED: ("Videos published", "published {}"),
    AuditAction.VIDEO_EDITED: ("Videos edited", "edited {}"),
    AuditAction.POSTER_REPLACED: ("Posters replaced", "asked for another poster of {}"),
    AuditAction.VIDEO_RETRIED: ("Videos tried again", "had what failed of {} tried again"),
    AuditAction.VIDEO_DELETED: ("Videos deleted", "deleted {}"),
    AuditAction.VIDEO_RESTORED: ("Deletions undone", "brought {} back"),
    AuditAction.ACCESS_CHANGED: ("Visibility", "changed who may see {}"),
    AuditAction.PLAYBACK_LINK_MADE: ("Playback links made", "made a playback link to {}"),
    AuditAction.PLAYBACK_LINK_REVOKED: ("Playback links revoked", "revoked a playback link to {}"),
    AuditAction.KEYS_ROTATED: ("Keys rotated", "rotated the keys of playback links"),
}
NOBODYS: dict[str, str] = {ActorKind.ANYONE: "Someone", ActorKind.COMMAND: "A command"}
# Of a line's details, those that are told beside its sentence, in this order.
DETAILS = {
    "was": "it was {}",
    "role": "role: {}",
    "account": "of {}",
    "fields": "changed: {}",
    "heir": "the videos are {}'s now",
    "scopes": "for {}",
    "sessions": "sessions: {}",
    "unlisted": "and {} more tries, which are not listed",
    "way": "by a one-time {}",
    "provider": "by {}",
    "visibility": "now {}",
    "revoked": "old keys revoked: {}",
}
FIELDS = {
    "category_ids": "categories",
    "signed_in_only": "for everyone with an account",
    "embed_origins": "sites that embed it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """A line as a sentence: who, what was done with which object, and what else is known.

    Addresses are empty where nothing is to be looked at.
    """

    who: str
    who_url: str
    before: str
    object: str
    object_url: str
    after: str
    facts: list[str]
    at: Moment
    until: Moment | None
    history_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """The form as it was sent, and the addresses of other lines."""

    actions: list[tuple[str, str]]
    action: str
    person: str
    thing: str
    is_filtered: bool
    is_newest: bool
    newest_url: str
    older_url: str
    export_url: str


def audit_view(query: AuditQuery, page: AuditPage, *, is_newest: bool) -> AuditView:
    """Everything around the lines."""
    chosen = {"action": query.action, "person": query.person, "object": query.thing}
    given: dict[str, Any] = {name: text for name, text in chosen.items() if text}
    return AuditView(
        actions=[("", "Everything"), *((it, label) for it, (label, _) in WORDS.items())],
        action=query.action,
        person=query.person,
        thing=query.thing,
        is_filtered=bool(given),
        is_newest=is_newest,
        newest_url=url_for("audit.index", **given),
        older_url=url_for("audit.index", **given, before=page.older) if page.older else "",
        export_url=url_for("audit.export", **given),
    )


def event_row(event: AuditEvent, titles: Mapping[str, tuple[str, bool]]) -> EventRow:
    """A line; `titles` has what videos are called, and whether they are there."""
    _, sentence = WORDS.get(event.action, ("", f"{event.action} {{}}"))
    before, has_object, after = sentence.partition("{}")
    name, url = _object(event, titles) if has_object else ("", "")
    email, expires = event.actor_email, event.detail.get("expires")
    is_video = event.action.startswith("video.")
    return EventRow(
        who=shown(email) or NOBODYS.get(event.actor_kind, "Someone"),
        who_url=url_for("audit.index", person=email) if email else "",
        before=before,
        object=shown(name),
        object_url=url,
        after=after,
        facts=_facts(event),
        at=moment(event.at),
        until=moment(datetime.fromisoformat(expires)) if expires else None,
        history_url=url_for("audit.index", object=event.object_id) if is_video else "",
    )


def _object(event: AuditEvent, titles: Mapping[str, tuple[str, bool]]) -> tuple[str, str]:
    """What the object is called, and where to look at it."""
    if event.action.startswith("video."):
        title, is_there = titles.get(event.object_id or "", ("a video that is gone", False))
        return title, url_for("video.page", video_id=event.object_id) if is_there else ""
    name = event.object_name
    if event.action.startswith("account.") and name:
        return name, url_for("audit.index", object=name)
    is_try = event.action == AuditAction.SIGN_IN_REFUSED
    return name or event.object_id or ("what is no e-mail address" if is_try else ""), ""


def _facts(event: AuditEvent) -> list[str]:
    token = f"by the API token “{shown(event.token_name)}”" if event.token_id else ""
    address = f"from {event.address}" if event.address else ""
    told = [
        words.format(_plain(name, event.detail[name]))
        for name, words in DETAILS.items()
        if name in event.detail
    ]
    return [*filter(None, (address, token)), *told]


def _plain(name: str, text: str) -> str:
    if name != "fields":
        return shown(text)
    return ", ".join(FIELDS.get(field, field) for field in text.split(", "))
