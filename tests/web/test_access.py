"""Every route has a policy, and over HTTP lets through whom that says, and nobody else."""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from api_client import answered, metadata, problem, put
from guarded_routes import Route, routes
from quart import Quart, Response
from signed_in import (
    OWN_PAGE,
    Sender,
    browser,
    make_account,
    make_upload,
    make_video,
    program,
    session_of,
    text_of,
    token_of,
)

from portal.accounts.permissions import ANYONE, EVERYONES, Audience, Principal
from portal.config import Config
from portal.database.account_models import Account, Role, Scope
from portal.database.models import Video
from portal.http.auth import ACTIONS, Policy, policy
from portal.http.errors import FOR_PROGRAMS
from portal.web.app import create_app

SIGN_IN = "/sign-in"
FORGOTTEN = "/forgotten"
API_FORGOTTEN = "/api/forgotten"
TO_THINGS = frozenset({Policy.WATCH, Policy.PLAY, Policy.EDIT, Policy.DELETE, Policy.OWN_UPLOAD})
# The first that a method and its address match. What changes something is no one's by default.
FITTING = (
    (r"(GET|POST) /(sign-in|set-up|welcome/.+)|POST /sign-out", Policy.ANYONE),
    (r"GET /sign-in/oidc(/callback)?", Policy.ANYONE),
    (r"GET /(healthz|readyz|metrics|static/.+|site.css|site-logo)", Policy.ANYONE),
    (r"GET /(favicon.ico|robots.txt|videos/<uuid:video_id>/)", Policy.ANYONE),
    (r"GET /sitemap(-<number>)?\.xml", Policy.ANYONE),
    (r"GET /api/(categories|docs|openapi.json)", Policy.ANYONE),
    (r"GET /api/me|POST /language", Policy.SELF),
    (r"GET (/api)?/series(/<series_id>)?", Policy.WATCH),
    (r"POST /(series|videos)/[^/]+/unlock", Policy.ANYONE),
    # Their views check who may edit the series.
    (r"\w+ (/api)?/series.*", Policy.PUBLISH),
    (r"GET (/api)?/statistics(\.csv)?", Policy.PUBLISH),
    (r"POST /api/playback", Policy.PLAY),
    (r"GET (/api)?/videos/<\w+>/(statistics|viewers)(\.csv)?", Policy.EDIT),
    (r"GET (/api)?/videos/<\w+>/(schedule|loudness)", Policy.EDIT),
    (r"GET /approvals|(POST|PUT) (/api)?/videos/<\w+>/approval", Policy.PUBLISH),
    (r"\w+ /account.*", Policy.OWN_ACCOUNT),
    (r"POST /videos/[^/]+/position(/remove)?", Policy.OWN_ACCOUNT),
    (r"\w+ /people.*", Policy.ADMINISTER),
    (r"GET /audit", Policy.ADMINISTER),
    (r"\w+ /groups.*", Policy.ADMINISTER),
    (r"GET /api/groups(/<\w+>)?", Policy.PUBLISH),
    (r"\w+ /api/groups.*", Policy.MANAGE),
    (r"GET /audit\.jsonl", Policy.MANAGE),
    (r"\w+ (/api)?/webhooks.*", Policy.WEBHOOKS),
    (r"GET /(record|upload|directory|videos(/progress)?)|POST /videos/selected", Policy.PUBLISH),
    (r"POST /api/(imports|videos(/presign)?)|GET /api/imports", Policy.PUBLISH),
    (r"\w+ /api/uploads.*", Policy.OWN_UPLOAD),
    (r"GET /hand-in/<secret>|POST /hand-in-files/.+", Policy.ANYONE),
    (r"\w+ /hand-ins.*", Policy.PUBLISH),
    (r"\w+ .+/(delete|deletion)|DELETE /api/videos/[^/]+", Policy.DELETE),
    (r"(PATCH|DELETE) .+/captions/.+|PATCH .+|DELETE .+/replacement", Policy.EDIT),
    (r"GET .+/film/.+", Policy.EDIT),
    (r"GET /(hls|embed)/.+|GET .+/(poster.jpg|storyboard.vtt)", Policy.PLAY),
    (r"GET /videos/[^/]+/downloads/[^/]+", Policy.PLAY),
    # A viewer who saves a file may have it made.
    (r"POST (/api)?/videos/[^/]+/downloads/[^/]+", Policy.WATCH),
    (r"GET /videos/[^/]+/(captions/(tracks|<language>.vtt)|chapters.vtt)", Policy.PLAY),
    (r"GET .+/(edit|facts|poster|access|panel|replacement|cuts(/editor|/state)?)", Policy.EDIT),
    (r"(POST|PUT) .*/videos/.+", Policy.EDIT),
    (r"\w+ .+/(playback-)?links(/.+)?", Policy.EDIT),
    (r"GET .+", Policy.WATCH),
)
# Policies that need an account, also on an open portal; None is that of a forgotten route.
CLOSED = (None, Policy.ADMINISTER, Policy.MANAGE, Policy.OWN_ACCOUNT)
SESSION = "in a browser"
# Every cell of role and scope is in accounts/test_permissions.py.
KINDS = [
    "nobody",
    *((role, SESSION) for role in Role),
    *((Role.ADMIN, scope) for scope in Scope),
    (Role.VIEWER, Scope.WRITE),
]


def add_careless(app: Quart) -> None:
    """Add routes without a policy, or without a check of the video's audience."""

    @app.get(FORGOTTEN)
    async def forgotten_page() -> str:
        return "a secret"

    @app.post(API_FORGOTTEN)
    async def forgotten_call() -> str:
        return "a secret"

    @app.get("/careless/<video_id>")
    @policy(Policy.WATCH)
    async def careless(video_id: str) -> str:
        return f"a secret of {video_id}"


pytestmark = pytest.mark.shared_app(prepare=add_careless, downloads="all", feeds=True)


async def test_route_that_forgets_a_policy_or_a_question_is_refused(app: Quart) -> None:
    """On an open portal, and to an owner."""
    assert {route.rule for route in routes(app) if route.policy is None} == {
        FORGOTTEN,
        API_FORGOTTEN,
    }

    async def check(sender: Sender) -> None:
        await problem(await sender.post(API_FORGOTTEN), 403, "not_allowed")
        for path, status in ((FORGOTTEN, 403), ("/careless/none", 500)):
            page = await sender.get(path)
            assert page.status_code == status
            assert "a secret" not in await text_of(page)

    await check(Sender(app))
    owner = await make_account("olga")
    await check(browser(app, await session_of(owner)))
    await check(program(app, await token_of(owner)))


def test_every_route_declares_the_policy_that_fits_its_address(config: Config) -> None:
    all_routes = routes(create_app(config))
    assert len(all_routes) > 60
    assert [route for route in all_routes if route.policy is None] == []
    assert [
        (route, fit) for route in all_routes if (fit := fitting_policy(route)) is not route.policy
    ] == []
    assert {route.policy for route in all_routes} == set(Policy)


def fitting_policy(route: Route) -> Policy:
    """Return the policy that fits the method and the address of a route."""
    text = f"{route.method.replace('HEAD', 'GET')} {route.rule}"
    return next(policy for pattern, policy in FITTING if re.fullmatch(pattern, text))


class Things:
    """A video and an upload of an account, recreated when they are deleted."""

    def __init__(self, owner: Account | None) -> None:
        self.owner_id = owner and owner.id
        self._owner = owner
        self._video_id = self._upload_id = ""

    async def id_for(self, route: Route) -> str:
        """The id that an address of this route takes."""
        if route.is_about_upload:
            thing_id = self._upload_id or await make_upload(self._owner)
            self._upload_id = "" if route.method == "DELETE" else thing_id
        else:
            thing_id = self._video_id or str((await make_video(self._owner)).id)
            is_deletion = route.policy is Policy.DELETE and route.method in ("POST", "DELETE")
            self._video_id = "" if is_deletion else thing_id
        return thing_id


async def who(app: Quart, kind: Any) -> tuple[Sender, Principal, Account | None]:
    """Someone of a kind: how they ask, who that is, and with what account."""
    if kind == "nobody":
        return Sender(app), ANYONE, None
    role, how = kind
    account = await make_account("ann", role)
    if how == SESSION:
        principal = Principal(account_id=account.id, role=role, session_id=uuid4())
        return browser(app, await session_of(account)), principal, account
    principal = Principal(account_id=account.id, role=role, scopes=frozenset({how}))
    return program(app, await token_of(account, [how])), principal, account


def is_let_through(policy: Policy | None, principal: Principal, owner_id: Any) -> bool:
    """Return whether a policy allows someone, by its definition alone."""
    if policy in (Policy.ANYONE, Policy.SELF):
        return True
    if policy is Policy.OWN_ACCOUNT:
        return principal.is_signed_in
    if policy is None:
        return False
    is_fit = policy is not Policy.ADMINISTER or principal.is_signed_in
    return is_fit and principal.may(ACTIONS[policy], on=Audience(owner_id=owner_id))


def is_refusal(response: Response) -> bool:
    location = response.headers.get("Location", "")
    is_led_away = response.status_code == 303 and urlsplit(location).path == SIGN_IN
    return response.status_code in (401, 403) or is_led_away


async def cells(
    app: Quart, sender: Sender, principal: Principal, *things: Things
) -> AsyncIterator[tuple[Route, Things, Response]]:
    """Yield the answer of each route, for each of these things if the route takes one."""
    for route in routes(app):
        # Any view answers HEAD as it does GET.
        if (route.method == "HEAD" and principal.role) or route.rule.startswith("/careless"):
            continue
        for those in things if route.policy in TO_THINGS else things[:1]:
            path = route.path(await those.id_for(route))
            yield route, those, await sender.ask(route.method, path)


@pytest.mark.parametrize("kind", KINDS, ids=str)
async def test_each_kind_of_caller_gets_what_each_route_declares(app: Quart, kind: Any) -> None:
    """Each is a row of the table; its cells are the routes, with own and others' things."""
    founder = await make_account("olga")
    sender, principal, account = await who(app, kind)
    wrong = []
    count = 0
    async for route, those, response in cells(
        app, sender, principal, Things(founder), Things(account)
    ):
        count += 1
        status = response.status_code
        is_own = those.owner_id == principal.account_id
        is_right = is_let_through(route.policy, principal, those.owner_id)
        if status >= 500 or is_refusal(response) is is_right:
            wrong.append((route, "own" if is_own else "others", status))
        elif not is_right and route.rule.startswith("/api/") and route.method != "HEAD":
            await check_problem(response, route, principal)
        elif is_right and route.is_about_upload and not is_own:
            # To whoever did not begin it, an upload is not there.
            assert status == 404, route
    assert wrong == []
    assert count > 90


async def check_problem(response: Response, route: Route, principal: Principal) -> None:
    """Check that a refusal of the API names the remedy."""
    challenge = response.headers.get("WWW-Authenticate", "")
    if route.policy is not None and principal.role is None:
        await problem(response, 401, "not_signed_in")
        assert challenge == 'Bearer realm="portal"'
    elif 'error="insufficient_scope"' in challenge:
        body = await problem(response, 403, "insufficient_scope")
        assert f'scope="{body["missingScope"]}"' in challenge
        assert body["missingScope"] in body["detail"]
    else:
        await problem(response, 403, "not_allowed")


async def test_everyone_may_do_everything_on_an_open_portal(app: Quart) -> None:
    wrong = []
    for headers in ({}, OWN_PAGE):
        async for route, _, response in cells(app, Sender(app, headers), EVERYONES, Things(None)):
            if is_refusal(response) is not (route.policy in CLOSED):
                wrong.append((route, response.status_code))
    assert wrong == []


async def test_pages_redirect_signed_out_people_to_the_form_and_back(app: Quart) -> None:
    await make_account("olga")
    video_id = str(uuid4())
    nobody = Sender(app)
    led = 0
    for route in routes(app):
        is_open = route.policy is None or is_let_through(route.policy, ANYONE, None)
        if route.method != "GET" or is_open or f"{route.rule}/".startswith(FOR_PROGRAMS):
            continue
        address = f"{route.path(video_id)}?a=1&b=%C3%A9%26&next=%2F%2Fevil.example"
        response = await nobody.get(address)
        parts = urlsplit(response.headers["Location"])
        assert (response.status_code, parts.netloc, parts.path) == (303, "", SIGN_IN)
        assert parse_qs(parts.query) == {"next": [address]}
        led += 1
        # Fragments and changes get the status instead of a redirect.
        fragment = await nobody.get(address, headers={"HX-Request": "true"})
        assert (fragment.status_code, fragment.headers.get("Location")) == (401, None)
    assert led == 38
    assert (await nobody.post(f"/videos/{video_id}/edit")).status_code == 401


async def test_ended_session_is_redirected_to_the_form(app: Quart) -> None:
    await make_account("olga")
    sender = browser(app, "ended")
    assert (await sender.get("/upload")).headers["Location"] == "/sign-in?next=/upload"
    assert (await sender.get("/")).status_code == 200
    await problem(await sender.post("/api/videos/presign"), 401, "not_signed_in")


async def test_refused_token_gets_401_everywhere(app: Quart) -> None:
    """A program has no use for a form, and where it may watch without a token it must not think
    that it was known.
    """
    await make_account("olga")
    sender = program(app, "portal_wrong")
    video = await make_video(None)
    api = ("/api/uploads/none", f"/api/videos/{video.id}")
    for path in (*api, "/", "/upload", f"/videos/{video.id}", "/account", SIGN_IN):
        response = await sender.get(path)
        assert response.status_code == 401, path
        assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]
        if path in api:
            await problem(response, 401, "invalid_token")


async def test_four_calls_need_nothing_until_the_first_account_closes_the_portal(
    app: Quart,
) -> None:
    body = {"fileName": "a.mp4", "contentType": "video/mp4"}
    for sender in (Sender(app), program(app, "portal_wrong"), browser(app, "wrong")):
        assert (await answered(await sender.get("/api/categories")))["categories"]
        upload = await answered(await sender.post("/api/videos/presign", json=body))
        assert await put(upload["uploadUrl"], b"a video") == 200
        record = await answered(await sender.post("/api/videos", json=metadata(upload["key"])), 201)
        stored = await answered(await sender.get(f"/api/videos/{record['id']}"))
        assert stored["title"] == "Harbour at dawn"
    assert not await Video.exclude(owner_id=None).exists()
    nobody = Sender(app)
    upload = await answered(await nobody.post("/api/videos/presign", json=body))
    olga = await make_account("olga")
    await problem(await nobody.post("/api/videos/presign", json=body), 401, "not_signed_in")
    # The owner can continue uploads from before there were accounts.
    token = program(app, await token_of(olga))
    assert (await token.get(f"/api/uploads/{upload['key'][7:39]}")).status_code == 200


async def test_answers_to_credentials_are_not_cached_for_others(app: Quart) -> None:
    olga = await make_account("olga")
    video = await make_video(olga)
    senders = [browser(app, await session_of(olga)), program(app, await token_of(olga))]
    for sender in senders:
        for path in ("/", f"/videos/{video.id}", "/upload", "/api/videos/none", "/nothing"):
            response = await sender.get(path)
            assert response.headers["Cache-Control"] == "private, no-store", path
            assert response.headers["Vary"].startswith("Authorization, Cookie"), path
