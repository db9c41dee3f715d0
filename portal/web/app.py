"""The Quart app that serves the JSON API, the pages and the playlists.

`create_app` joins blueprints, templates, error pages, checks and middlewares. The app opens the
database, storage and the queue when it starts.
"""

import logging
import os
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from hypercorn.typing import Scope
from quart import Quart, Response, request
from werkzeug.routing import Rule

from portal.config import Config, is_tracing_wanted
from portal.config.values import LOOPBACK
from portal.database.outages import skipped_in_outage
from portal.errors import HttpVersionRefused, Unavailable
from portal.features import FEATURES, PENDING, VERSION_HOOKS
from portal.http import assets, auth, errors, formatting, idempotency, json_bodies, languages
from portal.http.composition import WebContext, open_context
from portal.http.server import limits
from portal.http.server.context import SAFE_METHODS, App, RequestContext, state_of
from portal.http.server.headers import SecurityHeaders
from portal.http.server.limits import Rate
from portal.http.server.origins import check_origin, share
from portal.http.stored_texts import failure_words, track_label
from portal.telemetry import tracing
from portal.telemetry.logs import configure_logging, current_fields
from portal.videos.feature import Feature
from portal.web import monitoring, openapi

logger = logging.getLogger(__name__)

# Time for a client to receive a response. The largest are playlists of some megabytes.
RESPONSE_TIMEOUT_S = 60
# Frequent paths of no interest in a trace, and paths that contain secrets.
UNTRACED = (
    "/healthz$,/readyz$,/metrics$,/static/,/welcome/,/hand-in/,/hand-in-files/,/p/,/sign-in/oidc"
)
# Modules with a blueprint that belong to no feature.
SITE = (assets, monitoring, openapi)


def create_app(config: Config | None = None) -> Quart:
    """Return the app. The settings come from the environment by default."""
    config = config or Config.from_env()
    configure_logging(config)
    app = Quart("portal", static_folder=None, template_folder=str(assets.templates_dir()))
    # Werkzeug's redirect from a path with `//` would contain the host that the client sent.
    app.url_map.merge_slashes = False
    app.config["MAX_CONTENT_LENGTH"] = limits.MAX_BODY_BYTES
    app.config["BODY_TIMEOUT"] = limits.BODY_TIMEOUT_S
    app.config["RESPONSE_TIMEOUT"] = RESPONSE_TIMEOUT_S
    openapi.install_openapi(app, config)
    for module in (*SITE, *_modules_of(lambda feature: feature.routes)):
        app.register_blueprint(module.blueprint)
    app.request_class = limits.limited_request_class(_body_limits(app))
    tracing.start("web")
    if config.metrics or is_tracing_wanted(os.environ):
        app.before_request(_note_route)
    _install_checks(app, config)
    errors.install_error_handlers(app)
    _install_templates(app, config)
    _install_middleware(app, config)
    return app


def _modules_of(names: Callable[[Feature], Sequence[str]]) -> Iterator[Any]:
    """Import the modules of features that `names` returns for each."""
    for feature in FEATURES:
        for name in names(feature):
            yield import_module(f"portal.features.{feature.name}.{name}")


async def _note_route() -> None:
    """Record the request's rule for metrics and traces, since there are too many paths."""
    if request.url_rule is not None:
        # The rule without converters, such as /videos/<id>.
        route = re.sub(r"<[^<>:]+:", "<", request.url_rule.rule)
        state_of(request.scope).route = route
        request_id = str(current_fields().get("request_id", ""))
        tracing.describe(
            f"{request.method} {route}", **{"http.route": route, "portal.request_id": request_id}
        )


def _body_limits(app: Quart) -> limits.BodyLimits:
    routes = [(rule, declared.body) for rule, declared in _declared_rules(app)]
    return limits.BodyLimits(routes, app.url_map)


def _declared_rules(app: Quart) -> Iterator[tuple[Rule, auth.Declaration]]:
    """Yield the rules of routes with a policy."""
    for rule in app.url_map.iter_rules():
        if declared := auth.declaration_of(app, rule.endpoint):
            yield rule, declared


def _install_checks(app: Quart, config: Config) -> None:
    """Install the checks that each request has to pass before its view, in their order."""
    concurrency = limits.ConcurrencyLimit(config.max_concurrent_requests)
    changes = limits.RateLimit(config.rate_limit_changes)
    searches = limits.RateLimit(config.rate_limit_searches)
    # Limits of addresses, for requests whose sender is not known yet.
    of_addresses = {
        Rate.SIGN_IN: limits.RateLimit(config.rate_limit_sign_ins),
        Rate.REPORTS: limits.RateLimit(config.rate_limit_reports),
        Rate.DOWNLOADS: limits.RateLimit(config.rate_limit_downloads),
    }

    async def limit_rate() -> None:
        client = state_of(request.scope).client
        declared = auth.declaration_of(app, request.endpoint) if request.endpoint else None
        if declared is None:
            return
        is_change = request.method not in SAFE_METHODS
        is_search = (declared.rate is Rate.LISTING and bool(request.query_string)) or (
            declared.rate is Rate.SEARCH and "q" in request.args
        )
        is_anyones_change = is_change and declared.policy is auth.Policy.ANYONE
        rate = Rate.SIGN_IN if is_anyones_change else declared.rate
        if rate in of_addresses:
            of_addresses[rate].count(client, cost=await declared.body.cost())
        elif is_change or is_search:
            budget = changes if is_change else searches
            account_id = await auth.account_id()
            if account_id is None:
                budget.count(client)
            else:
                budget.count(str(account_id), is_account=True)

    @app.before_request
    async def check() -> Response | None:
        if request.http_version == "2":
            # Hypercorn accepts a client's upgrade to unencrypted HTTP/2, also through a proxy that
            # forwards it. Later requests of that connection would bypass the proxy's passwords.
            raise HttpVersionRefused
        if answer := check_origin(config):
            return answer
        concurrency.enter()
        await auth.enforce()
        await limit_rate()
        if str(request.endpoint).startswith(openapi.API_BLUEPRINTS):
            await json_bodies.refuse_undocumented()
        return await idempotency.replay()

    app.after_request(idempotency.keep)
    app.after_request(partial(share, config=config))
    app.teardown_request(concurrency.leave)


def _install_templates(app: Quart, config: Config) -> None:
    assets.install_site(app, config)
    manifest = assets.load_manifest(assets.static_dist_dir())
    app.jinja_env.globals["text_addresses"] = assets.load_text_addresses(assets.static_dist_dir())
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True

    languages.install_languages(app)
    for template_filter in formatting.FILTERS:
        app.add_template_filter(template_filter)
    for words in formatting.WORDS:
        app.add_template_filter(languages.translating(words))
    app.add_template_global(track_label)
    app.add_template_filter(failure_words)
    app.jinja_env.globals["features"] = {feature.name for feature in FEATURES}

    @app.template_global()
    def asset_url(name: str) -> str:
        return f"/static/{manifest[name]}"


def _install_middleware(app: Quart, config: Config) -> None:
    framework: Any = app.asgi_app
    # Players that send reports don't wait for the answers.
    paths = tuple(
        rule.rule for rule, declared in _declared_rules(app) if declared.rate is Rate.REPORTS
    )
    outliving = idempotency.outlive_clients(framework, paths=paths)
    headers = SecurityHeaders(tracing.traced(outliving, excluded_urls=UNTRACED))
    http: App = RequestContext(
        headers, trusted_proxies=config.trusted_proxies, is_counted=config.metrics
    )

    async def asgi_app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await http(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            # A violation of the policy (RFC 6455, section 7.4.1): there are no WebSockets.
            await send({"type": "websocket.close", "code": 1008, "reason": None})
        else:
            await framework(scope, receive, send)

    panels = [module.read_panel for module in _modules_of(lambda feature: feature.panels)]
    app.asgi_app = asgi_app  # type: ignore[method-assign]  # as Quart documents

    @app.while_serving
    async def context() -> AsyncGenerator[None]:
        async with open_context(
            config, hooks=VERSION_HOOKS, pending=PENDING, panels=panels
        ) as opened:
            app.extensions["portal"] = opened
            headers.set(config, await _storage_origin(opened))
            await _warn_if_open(opened)
            yield
        await tracing.flush()


async def _storage_origin(context: WebContext) -> str:
    try:
        return await context.storage.public.origin()
    except Unavailable as exc:
        # The web starts without credentials for storage. `portal doctor` explains what to do.
        logger.error("Storage is not configured: %s", exc.__cause__, extra={"action": "start"})
        return context.config.s3_public_endpoint_url


async def _warn_if_open(context: WebContext) -> None:
    if context.config.host in LOOPBACK:
        return
    # The warning is optional, since pages show it, too.
    with skipped_in_outage():
        if not await context.accounts_exist():
            logger.warning(
                "Anyone who reaches %s can publish and delete",
                context.config.public_url,
                extra={"action": "start"},
            )
