"""Authentication, and the declarations of routes: policy, request body, rate limit, answers.

A route without a declaration is refused. On a portal without accounts every policy lets anyone
through, except those for people with an account, and credentials are ignored. The rules of roles
are in `accounts.permissions`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from functools import wraps
from typing import ParamSpec, TypeVar
from uuid import UUID

from quart import Quart, current_app, g, request

from portal import errors
from portal.accounts.audit import act_as
from portal.accounts.people import fetch_principals
from portal.accounts.permissions import (
    ANYONE,
    EVERYONES,
    NOBODY_ELSE,
    Action,
    Audience,
    Principal,
    audience_of,
)
from portal.accounts.tokens import digest
from portal.database.models import Upload, Video
from portal.http.composition import WebContext, web_context
from portal.http.cookies import GUESTS, SENDER, SESSION, UNLOCKED
from portal.http.server.context import state_of
from portal.http.server.limits import Body, Rate
from portal.locale.messages import Message
from portal.uploads import service as uploads
from portal.videos.playback_links import unlock_digest
from portal.videos.reading import fetch_audience, parse_video_id, was_deleted
from portal.videos.series import fetch_unlocked_in_series

Values = ParamSpec("Values")
Answer = TypeVar("Answer")
View = Callable[Values, Awaitable[Answer]]


class Policy(Enum):
    """Permission that a route requires; see `docs/access.md`."""

    ANYONE = "anyone; credentials are ignored"
    SELF = "anyone, about their own account"
    WATCH = "anyone who may see the video"
    PLAY = "anyone who may see the video or has a playback link"
    PUBLISH = "accounts that may publish"
    OWN_UPLOAD = "the account that began the upload, or the browser that did by a hand-in link"
    EDIT = "accounts that may edit the video"
    DELETE = "accounts that may delete the video"
    ADMINISTER = "admins and owners, in a browser"
    MANAGE = "admins and owners, in a browser or with an API token"
    WEBHOOKS = "admins and owners, in a browser or with an API token; anyone on an open portal"
    OWN_ACCOUNT = "people who are signed in, in a browser"


ACTIONS = {
    Policy.WATCH: Action.WATCH,
    Policy.PLAY: Action.WATCH,
    Policy.PUBLISH: Action.PUBLISH,
    Policy.OWN_UPLOAD: Action.PUBLISH,
    Policy.EDIT: Action.EDIT,
    Policy.DELETE: Action.DELETE,
    Policy.ADMINISTER: Action.ADMINISTER,
    Policy.MANAGE: Action.ADMINISTER,
    Policy.WEBHOOKS: Action.ADMINISTER,
}
# Policies that no API token satisfies.
FOR_PEOPLE = frozenset({Policy.ADMINISTER, Policy.OWN_ACCOUNT})
# Policies whose views check the audience themselves, once they have read the video.
SEEN = frozenset({Policy.WATCH, Policy.PLAY})
TO_A_VIDEO = frozenset({Policy.EDIT, Policy.DELETE})
# Template that replaces the page of a video that is no longer available.
VIDEO_UNAVAILABLE = "errors/_video_unavailable.html"
# Attribute of a view.
DECLARATION = "portal_declaration"
# Guests that a browser keeps.
MAX_GUESTS = 20
# A request's own value.
PRINCIPAL = "principal"
# Names of the id in the paths of videos.
VIDEO_IDS = frozenset({"video_id", "id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Facts about a route, read by checks of requests and by the API's description.

    `content_types` are those of a successful answer, and `headers` its headers that clients use.
    A fragment of a page about a video has an `unavailable_template`, which replaces the page with
    status 410 when the video is deleted or private. Pages ignore a 404, which may come from a proxy
    that lost the portal.
    """

    policy: Policy
    body: Body
    rate: Rate | None
    content_types: tuple[str, ...]
    headers: tuple[str, ...]
    unavailable_template: str


def policy(
    required: Policy,
    *,
    body: Body = Body(),  # noqa: B008  # frozen
    rate: Rate | None = None,
    content_types: tuple[str, ...] = ("application/json",),
    headers: tuple[str, ...] = (),
    unavailable_template: str = "",
) -> Callable[[View[Values, Answer]], View[Values, Answer]]:
    """Declare a route's policy and its other facts. Place it right below the route."""
    declaration = Declaration(
        policy=required,
        body=body,
        rate=rate,
        content_types=content_types,
        headers=headers,
        unavailable_template=unavailable_template,
    )

    def declare(view: View[Values, Answer]) -> View[Values, Answer]:
        declared = _checking_visibility(view) if required in SEEN else view
        setattr(declared, DECLARATION, declaration)
        return declared

    return declare


def declaration_of(app: Quart, endpoint: str) -> Declaration | None:
    """Return the declaration of a route; None if somebody forgot it."""
    return getattr(app.view_functions[endpoint], DECLARATION, None)


async def enforce() -> None:
    """Refuse the current request unless its route's policy lets it through."""
    state = state_of(request.scope)
    endpoint = request.endpoint
    # The audit log's actor until the caller is identified.
    act_as(ANYONE, address=state.client)
    if endpoint is None:
        return
    declaration = declaration_of(current_app, endpoint)
    if declaration is None:
        raise errors.NotAllowed(Message("Nobody may use this address: it has no policy."))
    required = declaration.policy
    if state.playback_token and required is not Policy.PLAY:
        raise errors.NotFound
    if required is Policy.ANYONE:
        return
    if required in FOR_PEOPLE:
        await require_person()
    # A portal without accounts has no admins to read the log.
    if required is Policy.MANAGE and await account_id() is None:
        raise errors.NotSignedIn
    # Public videos take no query, but an invalid token is refused.
    if required in SEEN and "Authorization" not in request.headers:
        return
    if required in ACTIONS:
        await _require_action(required)


def named_video_id() -> UUID | None:
    """Return the id of the video in the current address; None if there is no valid one."""
    values = request.view_args or {}
    return parse_video_id(str(values.get("video_id") or values.get("id")))


async def require_visible(audience: Audience | None, *, of_page: bool = False) -> None:
    """Raise `VideoNotFound` unless the caller is in the audience of an existing video.

    With `of_page` the page counts, which everyone may see of some private videos. A video with a
    password raises `VideoLocked` instead. A missing video takes the same steps as a private one, so
    that they can't be told apart.
    """
    state_of(request.scope).was_asked = True
    if of_page and audience and audience.has_public_page and ANYONE.may_see_page(audience):
        return
    named_id = parse_video_id(str((request.view_args or {}).get("video_id")))
    if not await may_watch(named_id, audience):
        is_locked = audience is not None and audience.is_locked
        raise errors.VideoLocked if is_locked else errors.VideoNotFound


async def may_watch(video_id: UUID | None, audience: Audience | None) -> bool:
    """Return whether the sender of the request may watch a video.

    They may if they are in its audience, or if the request's path has a playback token for it.
    False for a missing video, whose audience is None. Raises `PlaybackTokenRefused` for a token
    that is invalid or for another video.
    """
    state = state_of(request.scope)
    if state.playback_token:
        is_visible = await _token_grants(state.playback_token, video_id, audience or NOBODY_ELSE)
    elif audience is not None and not audience.is_private:
        return True
    else:
        is_visible = (await principal()).may_see(audience or NOBODY_ELSE)
    return is_visible and audience is not None


async def principal() -> Principal:
    """Return the caller of the current request. Raises `TokenRefused`."""
    caller: Principal | None = g.get(PRINCIPAL)
    if caller is None:
        caller = await _identify(sent_credentials(), web_context())
        identify_as(caller)
    return caller


def identify_as(caller: Principal) -> None:
    """Set the caller of the current request, for a view that verifies its own credential."""
    setattr(g, PRINCIPAL, caller)
    act_as(caller, address=state_of(request.scope).client)


async def require_person() -> Principal:
    """Return the person who is signed in in the caller's browser. Raises `NotSignedIn`."""
    person = await principal()
    if not person.is_signed_in:
        raise errors.NotSignedIn(Message("API tokens can't be used here. Sign in with a browser."))
    return person


async def account_id() -> UUID | None:
    """Return the account that the current request acts for; None without accounts."""
    return (await principal()).account_id


async def require_own_upload(upload: Upload | None) -> Upload:
    """Return an upload of the account, or one that the browser began by a hand-in link.

    Raise `UploadNotIssued` if it is missing or of others, and as `Principal.require`.
    """
    if upload is not None and await _is_senders(upload):
        return upload
    (await principal()).require(Action.PUBLISH)
    own_id = await account_id()
    if upload is None or own_id not in (None, upload.owner_id):
        raise errors.UploadNotIssued
    return upload


async def _is_senders(upload: Upload) -> bool:
    """Return whether the browser began an upload by a link that has not ended, of a publisher."""
    has_ended = upload.sender_until is None or upload.sender_until <= datetime.now(UTC)
    if has_ended or upload.sender_digest != sender_digest():
        return False
    if upload.owner_id is None:
        return True
    makers = await fetch_principals([upload.owner_id])
    return makers.get(upload.owner_id, ANYONE).may(Action.PUBLISH)


def sender_digest() -> str:
    """Return the digest of the secret by which the browser hands files in."""
    return digest(SENDER.read(request, web_context().config))


async def may_edit(video: Video) -> bool:
    """Return whether the caller may edit this video."""
    return (await principal()).may(Action.EDIT, on=audience_of(video))


def _checking_visibility(view: View[Values, Answer]) -> View[Values, Answer]:
    """Return the view, guarded: it fails if it did not check that the caller may see the video."""

    @wraps(view)
    async def checked_view(*args: Values.args, **values: Values.kwargs) -> Answer:
        answer = await view(*args, **values)
        if values.keys() & VIDEO_IDS and not state_of(request.scope).was_asked:
            raise RuntimeError(f"{view.__name__} did not check that the caller may see the video")
        return answer

    return checked_view


async def _token_grants(token: str, video_id: UUID | None, audience: Audience) -> bool:
    """Return whether a playback token grants this video.

    The token's link, account or password is read each time. Raises `PlaybackTokenRefused`.
    """
    web = web_context()
    if video_id is None:
        return False
    verified = await web.signing_keys.verify(token, video_id=video_id)
    if verified.link_id is not None:
        return (
            not audience.is_pending and await web.playback_links.load(verified.link_id) == video_id
        )
    if verified.unlock_digest:
        unlock_id = audience.unlock_id if audience.is_locked else None
        return unlock_id is not None and verified.unlock_digest == unlock_digest(unlock_id)
    member = await web.members.load(verified.account_id) if verified.account_id else None
    return member is not None and member.may_see(audience)


async def _require_action(required: Policy) -> None:
    """Require a policy's action on the video or upload in the address.

    A video that is hidden from the caller is refused as if it did not exist, with the same queries,
    before the view can report other faults of the request. Recently deleted videos and imports are
    left to the views.
    """
    caller = await principal()
    action = ACTIONS[required]
    values = request.view_args or {}
    if required not in TO_A_VIDEO:
        if required is Policy.OWN_UPLOAD and "id" in values:
            upload_id = uploads.parse_id(str(values["id"]))
            await require_own_upload(await Upload.get_or_none(id=upload_id))
        # A view checks the upload that a body names. Others need an account or a sender's browser.
        elif required is not Policy.OWN_UPLOAD or not SENDER.read(request, web_context().config):
            caller.require(action)
        return
    video_id = named_video_id()
    audience = await fetch_audience(video_id) if video_id else None
    is_visible = audience is not None and caller.may_see(audience)
    own = Audience(owner_id=caller.account_id)
    caller.require(action, on=audience if audience and is_visible else own)
    if is_visible:
        state_of(request.scope).visible_id = video_id
        return
    if video_id and audience is None:
        pending = await web_context().find_pending(video_id, caller)
        if pending or await was_deleted(video_id):
            return
    raise errors.VideoNotFound


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of a request: an Authorization header, or the secret of a session.

    `guests` are the secrets of guests, and `unlocked_ids` those of the passwords that were entered
    in the browser.
    """

    authorization: str
    session: str | None
    guests: tuple[str, ...]
    unlocked_ids: frozenset[UUID]


def sent_credentials() -> Credentials:
    """Return the credentials of the current request."""
    return Credentials(
        authorization=request.headers.get("Authorization", ""),
        session=SESSION.read(request, web_context().config),
        guests=guest_secrets(),
        unlocked_ids=frozenset(unlocked_ids()),
    )


def guest_secrets() -> tuple[str, ...]:
    """Return the secrets of the guests that the caller's browser confirmed, in their order."""
    values = GUESTS.read(request, web_context().config).split(".")
    return tuple(value for value in values[-MAX_GUESTS:] if value)


def unlocked_ids() -> list[UUID]:
    """Return the ids in the cookie of passwords (`Audience.unlock_id`), the oldest first.

    They are whatever the client sent: an id counts if a video or a series has it.
    """
    ids = map(parse_video_id, UNLOCKED.read(request, web_context().config).split("."))
    return [unlock_id for unlock_id in ids if unlock_id]


async def still_identify(reader: Principal, credentials: Credentials, web: WebContext) -> bool:
    """Return whether credentials still identify `reader`, with the same role and scopes.

    They stop doing so when the account is disabled, its role changes, or the token or session ends.
    """
    try:
        return await _identify(credentials, web) == reader
    except errors.TokenRefused:
        return False


async def _identify(credentials: Credentials, web: WebContext) -> Principal:
    """Return the owner of these credentials. Raises `TokenRefused`."""
    if not await web.accounts_exist():
        return EVERYONES
    scheme, _, token = credentials.authorization.partition(" ")
    if scheme.lower() == "bearer":
        program = await web.programs.load(digest(token.strip()))
        if program is None:
            raise errors.TokenRefused
        return program
    secret = credentials.session
    person = (await web.sessions.load(digest(secret)) if secret else None) or ANYONE
    for guest_secret in credentials.guests:
        if guest := await web.guests.load(digest(guest_secret)):
            email = person.email or guest.email
            person = replace(person, email=email, group_ids=person.group_ids | {guest.id})
    if credentials.unlocked_ids:
        in_series = await fetch_unlocked_in_series(credentials.unlocked_ids)
        return replace(person, unlocked_ids=credentials.unlocked_ids | in_series)
    return person
