"""Authentication, and what routes declare: policy, request body, rate limit, answers.

A route without a declaration is refused. On a portal without accounts every policy but those for
people with an account lets anyone through, and credentials are not looked at. The rules themselves
are in `accounts.permissions`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import ParamSpec, TypeVar
from uuid import UUID

from quart import Quart, current_app, g, request

from portal import errors
from portal.accounts.audit import act_as
from portal.accounts.permissions import (
    ANYONE,
    EVERYONES,
    NOBODY_ELSE,
    Action,
    Audience,
    Principal,
)
from portal.accounts.tokens import digest
from portal.database.models import Video
from portal.uploads import service as uploads
from portal.videos.deletion import was_deleted
from portal.videos.imports import find
from portal.videos.reading import fetch_audience, parse_video_id
from portal.web.composition import WebContext, web_context
from portal.web.cookies import SESSION
from portal.web.server.context import state_of
from portal.web.server.limits import Body, Rate

Values = ParamSpec("Values")
Answer = TypeVar("Answer")
View = Callable[Values, Awaitable[Answer]]


class Policy(Enum):
    """What a route asks of who uses it, in the words of `docs/access.md`."""

    ANYONE = "anyone; credentials are not looked at"
    SELF = "anyone, about themselves"
    WATCH = "who may see the video"
    PLAY = "who may see the video, or has a playback link to it"
    PUBLISH = "who may publish"
    OWN_UPLOAD = "who began the upload"
    EDIT = "who may edit the video"
    DELETE = "who may delete the video"
    ADMINISTER = "admins and owners, in a browser"
    AUDIT = "admins and owners, in a browser or with an API token"
    WEBHOOKS = "admins and owners, in a browser or with an API token; anyone without accounts"
    OWN_ACCOUNT = "who is signed in, in a browser"


ACTIONS = {
    Policy.WATCH: Action.WATCH,
    Policy.PLAY: Action.WATCH,
    Policy.PUBLISH: Action.PUBLISH,
    Policy.OWN_UPLOAD: Action.PUBLISH,
    Policy.EDIT: Action.EDIT,
    Policy.DELETE: Action.DELETE,
    Policy.ADMINISTER: Action.ADMINISTER,
    Policy.AUDIT: Action.ADMINISTER,
    Policy.WEBHOOKS: Action.ADMINISTER,
}
# What programs have no business with, whatever their token.
FOR_PEOPLE = frozenset({Policy.ADMINISTER, Policy.OWN_ACCOUNT})
# What anyone may ask for; whether the video is there for them is known once it has been read.
SEEN = frozenset({Policy.WATCH, Policy.PLAY})
TO_A_VIDEO = frozenset({Policy.EDIT, Policy.DELETE})
# Attribute of a view.
DECLARATION = "portal_declaration"
# A request's own value.
PRINCIPAL = "principal"
# How the routes of videos name the id in their path.
VIDEO_IDS = frozenset({"video_id", "id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Facts about a route, read by checks of requests and by the API's description.

    `content_types` are those of a successful answer, and `headers` its headers that clients use.
    """

    policy: Policy
    body: Body
    rate: Rate | None
    content_types: tuple[str, ...]
    headers: tuple[str, ...]


def policy(
    required: Policy,
    *,
    body: Body = Body(),  # noqa: B008  # frozen
    rate: Rate | None = None,
    content_types: tuple[str, ...] = ("application/json",),
    headers: tuple[str, ...] = (),
) -> Callable[[View[Values, Answer]], View[Values, Answer]]:
    """Declare a route's policy and its other facts; stands right below the route."""
    declaration = Declaration(
        policy=required, body=body, rate=rate, content_types=content_types, headers=headers
    )

    def declare(view: View[Values, Answer]) -> View[Values, Answer]:
        declared = _asking(view) if required in SEEN else view
        setattr(declared, DECLARATION, declaration)
        return declared

    return declare


def declaration_of(app: Quart, endpoint: str) -> Declaration | None:
    """Return the declaration of a route; None if somebody forgot it."""
    return getattr(app.view_functions[endpoint], DECLARATION, None)


async def enforce() -> None:
    """Refuse the current request unless its route's policy lets it through."""
    state, endpoint = state_of(request.scope), request.endpoint
    # For the audit log, until it is known who that is.
    act_as(ANYONE, address=state.client)
    if endpoint is None:
        return
    declaration = declaration_of(current_app, endpoint)
    if declaration is None:
        raise errors.NotAllowed("Nobody may use this address: it has no policy.")
    wanted = declaration.policy
    if state.playback_token and wanted is not Policy.PLAY:
        raise errors.NotFound
    if wanted is Policy.ANYONE:
        return
    if wanted in FOR_PEOPLE:
        await require_person()
    # On a portal without accounts the log is nobody's.
    if wanted is Policy.AUDIT and await account_id() is None:
        raise errors.NotSignedIn
    # What anyone may see takes no query, unless a token could be wrong.
    if wanted in SEEN and "Authorization" not in request.headers:
        return
    if wanted in ACTIONS:
        await _require(wanted)


async def require_visible(audience: Audience | None) -> None:
    """Raise `VideoNotFound` unless there is a video, with this audience, and who asks is in it.

    What is not there takes the same way as what is private.
    """
    state = state_of(request.scope)
    state.was_asked = True
    if state.playback_token:
        is_seen = await _opens(state.playback_token, audience or NOBODY_ELSE)
    elif audience is not None and not audience.is_private:
        return
    else:
        is_seen = (await principal()).may_see(audience or NOBODY_ELSE)
    if audience is None or not is_seen:
        raise errors.VideoNotFound


async def principal() -> Principal:
    """Who sent the current request. Raises `TokenRefused`."""
    if PRINCIPAL not in g:
        setattr(g, PRINCIPAL, await _identify(sent_credentials(), web_context()))
        act_as(getattr(g, PRINCIPAL), address=state_of(request.scope).client)
    found: Principal = getattr(g, PRINCIPAL)
    return found


async def require_person() -> Principal:
    """Who is signed in in the browser that sent the request. Raises `NotSignedIn`."""
    found = await principal()
    if not found.is_signed_in:
        raise errors.NotSignedIn("This is for people. Sign in with a browser.")
    return found


async def account_id() -> UUID | None:
    """The account that the current request acts for; None on a portal without accounts."""
    return (await principal()).account_id


async def require_own_upload(upload_id: UUID) -> None:
    """Raise `UploadNotIssued` for the upload of another account."""
    own_id = await account_id()
    if own_id is None:
        return
    upload = await uploads.find(upload_id)
    if upload is None or upload.owner_id != own_id:
        raise errors.UploadNotIssued


async def may_edit(video: Video) -> bool:
    """Whether who asks may edit this video, and so is shown how."""
    return (await principal()).may(Action.EDIT, owner_id=video.owner_id)


def _asking(view: View[Values, Answer]) -> View[Values, Answer]:
    """The view, which answers nothing about a video without asking whether it may be seen."""

    @wraps(view)
    async def asked(*args: Values.args, **values: Values.kwargs) -> Answer:
        answer = await view(*args, **values)
        if values.keys() & VIDEO_IDS and not state_of(request.scope).was_asked:
            raise RuntimeError(f"{view.__name__} did not ask whether the video may be seen")
        return answer

    return asked


async def _opens(token: str, audience: Audience) -> bool:
    """Whether a playback token lets its bearer see the video of this address.

    Raises `PlaybackTokenRefused`. What the token's link or account may do is looked at each time.
    """
    web, video_id = web_context(), parse_video_id(str((request.view_args or {})["video_id"]))
    if video_id is None:
        return False
    found = await web.signing_keys.verify(token, video_id=video_id)
    if found.link_id is not None:
        return await web.playback_links.load(found.link_id) == video_id
    member = await web.members.load(found.account_id) if found.account_id else None
    return member is not None and member.may_see(audience)


async def _require(wanted: Policy) -> None:
    """Refuse who asks the action of a policy, of the video or upload in the address.

    A video that is hidden from someone is, to them, not there, and takes the same queries. That is
    answered here, before a view could tell what else is wrong with the request. Of what was deleted
    a moment ago, and of imports, views know more.
    """
    found, action, values = await principal(), ACTIONS[wanted], request.view_args or {}
    if wanted not in TO_A_VIDEO:
        found.require(action)
        if wanted is Policy.OWN_UPLOAD:
            await require_own_upload(uploads.parse_id(str(values["id"])))
        return
    video_id = parse_video_id(str(values.get("video_id") or values.get("id")))
    audience = await fetch_audience(video_id) if video_id else None
    is_there = audience is not None and found.may_see(audience)
    found.require(action, owner_id=audience.owner_id if audience and is_there else found.account_id)
    if is_there:
        return
    if video_id and audience is None and (await was_deleted(video_id) or await find(video_id)):
        return
    raise errors.VideoNotFound


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request says of its sender: an Authorization header, or the secret of a session."""

    authorization: str
    session: str | None


def sent_credentials() -> Credentials:
    """Return the credentials of the current request."""
    return Credentials(
        authorization=request.headers.get("Authorization", ""),
        session=SESSION.read(request, web_context().config),
    )


async def still_identify(reader: Principal, credentials: Credentials, web: WebContext) -> bool:
    """Return whether credentials still identify `reader`, with the same role and scopes.

    They don't once the account is disabled, its role changes, or the token or session has ended.
    """
    try:
        return await _identify(credentials, web) == reader
    except errors.TokenRefused:
        return False


async def _identify(credentials: Credentials, web: WebContext) -> Principal:
    """Return who sends these credentials. Raises `TokenRefused`."""
    if not await web.accounts_exist():
        return EVERYONES
    scheme, _, token = credentials.authorization.partition(" ")
    if scheme.lower() == "bearer":
        program = await web.programs.load(digest(token.strip()))
        if program is None:
            raise errors.TokenRefused
        return program
    secret = credentials.session
    person = await web.sessions.load(digest(secret)) if secret else None
    return person or ANYONE
