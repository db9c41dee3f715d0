"""Description of the API: OpenAPI 3.1 at /api/openapi.json, and a page at /api/docs.

quart-schema builds the document from the views' shapes. This module adds the facts that routes
declare (`http.auth.policy`), and the problem documents that all routes of a kind return.
"""

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import Any

from pydantic import BaseModel
from quart import Blueprint, Quart, Response, current_app, jsonify, render_template
from quart_schema import Info, OpenAPIProvider, QuartSchema
from werkzeug.routing.rules import Rule

from portal import __version__
from portal.config import Config
from portal.errors import Conflict, PortalError, Unavailable
from portal.features import FEATURES
from portal.features.captions.api import CaptionFile, WebVtt
from portal.features.events.api import LAST_EVENT_ID
from portal.http import idempotency
from portal.http.auth import ACTIONS, Declaration, Policy, declaration_of, policy
from portal.http.composition import web_context
from portal.http.cookies import SESSION
from portal.http.errors import HTTP_MESSAGES
from portal.http.json_bodies import JSON
from portal.http.schemas.base import Problem, ValidationProblem
from portal.http.schemas.webhooks import TestEvent
from portal.http.server.headers import conditional_response

blueprint = Blueprint("docs", __name__, url_prefix="/api")

# Prefix of the names of blueprints that belong to the JSON API.
API_BLUEPRINTS = "api_"
DESCRIPTIONS = {
    200: "Done.",
    201: "Created.",
    202: "Accepted. The rest is done in the background.",
    204: "Done.",
    304: "Not changed since the version that If-None-Match names.",
    400: "The body is not JSON, or not a report.",
    401: "An account is required, or the API token is invalid.",
    403: "The request comes from another site's page, or the account or token lacks permission.",
    404: "Nothing with this id or key exists, or you may not see it.",
    406: "The Accept header excludes text/event-stream.",
    408: "The body did not arrive in time.",
    410: "Later events have been deleted already, or statistics are switched off.",
    409: "The request conflicts with the current state; `code` says why.",
    412: "Someone else has changed it since you read it. Nothing was written.",
    413: "The body is larger than 64 KiB, 2 MiB for members of a group, or 4 MiB for captions.",
    415: "The Content-Type is not JSON, a type of caption files, or application/cmcd.",
    421: "The portal does not answer to this host name. See PUBLIC_URL and ALLOWED_HOSTS.",
    422: "Members of the body, parameters of the query or headers are invalid. `errors` lists all "
    "faults.",
    428: "If-Match is missing.",
    429: "Too many requests from this account or address. Try again after the seconds given.",
    503: "The database or storage is unreachable, or the portal is overloaded. Try again after the "
    "seconds given.",
}
# Statuses that a parameter may cause, by its name or its location.
PROBLEMS = {
    "path": {404},
    "query": {422},
    "If-Match": {412},
    LAST_EVENT_ID: {422},
    idempotency.HEADER: {409, 422},
}
PATH_PARAMETERS = {
    "id": "Identifier of the video, upload, webhook or group.",
    "number": "Number of the part, counted from 1.",
    "language": "Language of the captions (BCP 47).",
    "file": "Name of the file, as the list of files has it.",
    "link_id": "Identifier of the playback link.",
    "delivery_id": "Identifier of the delivery.",
    "series_id": "Identifier of the series.",
}
# Headers of answers by status.
HEADERS = {401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}
# Headers of the conflicts that a route documents. The ETag names the recorded version.
CONFLICTS = {412: ("ETag",)}
SUCCESSES = frozenset({200, 201, 202})


def _describe_webhook(summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    operation = {
        "summary": summary,
        "description": "Signed with the headers `webhook-id`, `webhook-timestamp` and "
        "`webhook-signature` (see Standard Webhooks). An event may arrive twice, with the same id, "
        "and out of order: compare `sequence`. `playbackUrl` of a private video is empty, and a "
        "long description is shortened to fit 20 kB.",
        "requestBody": {"required": True, "content": {JSON: {"schema": schema}}},
        "responses": {
            "2XX": {"description": "Received. After any other status the event is sent again."}
        },
    }
    return {"post": operation}


WEBHOOKS = {
    # The same shape as listed events.
    "event": _describe_webhook(
        "A video changed, or an import failed.", {"$ref": "#/components/schemas/VideoEvent"}
    ),
    "webhook.test": _describe_webhook("Someone sent a test event.", TestEvent.model_json_schema()),
}
# Errors of the framework itself, with their names in HTTP.
BY_FRAMEWORK = {405: "method_not_allowed", 408: "request_timeout", 413: "request_entity_too_large"}


class Provider(OpenAPIProvider):
    """quart-schema's document with the declarations of routes, built once per process."""

    @cached_property
    def document(self) -> dict[str, Any]:
        """Return the document, with the events that webhooks send."""
        has_webhooks = any(feature.name == "webhooks" for feature in FEATURES)
        return {**self.schema(), **({"webhooks": WEBHOOKS} if has_webhooks else {})}

    def generate_rules(self) -> Iterable[Rule]:
        """Return the rules of the JSON API."""
        rules = super().generate_rules()
        return (rule for rule in rules if rule.endpoint.startswith(API_BLUEPRINTS))

    def operation_id(self, method: str, path: str, func: Callable[..., Any]) -> str:
        """Return the name of the view, which generated clients call the operation."""
        return func.__name__

    def build_paths(self, rule: Rule) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the operations of a rule, and the shapes that they use."""
        paths, shapes = super().build_paths(rule)
        declaration = declaration_of(current_app, rule.endpoint)
        if declaration is not None:
            for operations in paths.values():
                for method, operation in operations.items():
                    shapes |= self._complete_operation(operation, method, declaration)
                    _name_shapes(operation, shapes)
        return paths, shapes

    def _complete_operation(
        self, operation: dict[str, Any], method: str, declaration: Declaration
    ) -> dict[str, Any]:
        """Complete an operation in place, by its route's declaration: security, headers, problems.

        `method` is the HTTP method in lower case. Returns the schemas that the additions name.
        """
        answers: dict[int, dict[str, Any]] = operation["responses"]
        documented = set(answers)
        shapes: dict[str, Any] = {}
        operation["description"] = operation["description"].strip()
        operation["security"] = _describe_security(declaration.policy)
        _complete_request(operation, method, declaration)
        for status in documented & SUCCESSES:
            content = answers[status]["content"]
            answers[status]["content"] = _describe_content(
                declaration.content_types, content, WebVtt
            )
        for status in _usual_problems(operation):
            shape = ValidationProblem if status == 422 else Problem
            answer, parts = self.build_response_object(shape, None)
            answers.setdefault(status, answer)
            shapes |= parts
        if method == "delete" or not declaration.content_types:
            answers[204] = {}
        elif method == "get" and "ETag" in declaration.headers:
            answers[304] = {}
        for status, answer in answers.items():
            answer["description"] = DESCRIPTIONS[status]
            names: tuple[str, ...] = HEADERS.get(status, ())
            if status in documented:
                names = declaration.headers if status in SUCCESSES else CONFLICTS.get(status, ())
            if names:
                answer["headers"] = {
                    name: {"schema": {"type": "integer" if name == "Retry-After" else "string"}}
                    for name in names
                }
            if status >= 400:
                answer["content"] = {"application/problem+json": answer["content"].pop(JSON)}
        operation["responses"] = {str(status): answers[status] for status in sorted(answers)}
        return shapes


def _describe_security(required: Policy) -> list[dict[str, list[str]]]:
    """Return the credentials of which an operation takes one: none, a token, or a session.

    None comes first: a portal without accounts takes everything without credentials.
    """
    if required in ACTIONS:
        return [{}, {"token": [ACTIONS[required].scope.value]}, {"session": []}]
    return [{}, {"token": []}, {"session": []}] if required is Policy.SELF else []


def _describe_content(
    content_types: Collection[str], documented: dict[str, Any], other: type[BaseModel]
) -> dict[str, Any]:
    """Return the content of a body in all its types.

    The documented shape is that of the JSON types, or of the only type; the rest is text.
    """
    shape = documented[JSON]["schema"]
    text = other.model_json_schema()
    return {
        kind: {"schema": dict(shape if kind.endswith("json") or len(content_types) == 1 else text)}
        for kind in content_types
    }


def _complete_request(operation: dict[str, Any], method: str, declaration: Declaration) -> None:
    """Complete the parameters, and add the headers and content types of the request."""
    for parameter in operation["parameters"]:
        _complete_parameter(parameter)
    if idempotency.keeps_answers(method.upper(), declaration.policy):
        operation["parameters"] = [*operation["parameters"], idempotency.PARAMETER]
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]
        operation["requestBody"]["content"] = _describe_content(
            declaration.body.content_types, content, CaptionFile
        )


def _complete_parameter(parameter: dict[str, Any]) -> None:
    """Mark a required parameter, and describe one of a path.

    Null is no value of a parameter: generated clients would send it.
    """
    schema = parameter["schema"]
    parameter["required"] = "default" not in schema
    if not parameter["required"] and schema["default"] is None:
        kinds = [kind for kind in schema.pop("anyOf") if kind != {"type": "null"}]
        del schema["default"]
        schema.update(*kinds)
    if parameter["in"] == "path":
        parameter["description"] = PATH_PARAMETERS[parameter["name"]]


def _usual_problems(operation: dict[str, Any]) -> set[int]:
    """Return the error statuses that follow from an operation's request."""
    # Unknown host, rate limits and outages.
    statuses = {421, 429, 503}
    if operation["security"]:
        statuses |= {401, 403}
    for parameter in operation["parameters"]:
        statuses |= PROBLEMS.get(parameter["name"]) or PROBLEMS[parameter["in"]]
        if parameter["name"] == "If-Match" and parameter["required"]:
            statuses.add(428)
    if "requestBody" in operation:
        operation["requestBody"]["required"] = True
        statuses |= {400, 408, 413, 415, 422}
    return statuses


def _name_shapes(operation: dict[str, Any], shapes: dict[str, Any]) -> None:
    """Move the shapes of bodies to the components, where generated clients find their names."""
    for body in (operation.get("requestBody", {}), *operation["responses"].values()):
        for content in body.get("content", {}).values():
            shape = content["schema"]
            shapes[shape["title"]] = shape
            content["schema"] = {"$ref": f"#/components/schemas/{shape['title']}"}


def install_openapi(app: Quart, config: Config) -> None:
    """Have the app build the document. This module's routes serve it."""
    QuartSchema(
        app,
        openapi_path=None,
        info=Info(
            title="Portal API",
            version=__version__,
            description="Publish videos in three steps: read the categories, ask for an upload "
            "address and PUT the file to it, then create the video.",
        ),
        security_schemes={
            "token": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in_": "cookie", "name": SESSION.name(config)},
        },
        openapi_provider_class=Provider,
        conversion_preference="pydantic",
    )


@blueprint.get("/openapi.json")
@policy(Policy.ANYONE)
async def openapi() -> Response:
    """Return the OpenAPI 3.1 document."""
    return await conditional_response(await jsonify(_read_document()).get_data())


@blueprint.get("/docs")
@policy(Policy.ANYONE)
async def docs() -> str:
    """Return the document as a page. The `type` of problem documents links to its errors."""
    document = _read_document()
    resources: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            resources.setdefault(operation["tags"][0], []).append((method, path, operation))
    return await render_template(
        "api/docs.html",
        spec=document,
        resources=resources,
        errors=_list_errors(),
        base_url=web_context().config.public_url,
    )


def _read_document() -> dict[str, Any]:
    document: dict[str, Any] = current_app.extensions["QUART_SCHEMA"].openapi_provider.document
    return document


def _list_errors() -> dict[str, tuple[int, str]]:
    """Return the status and message of every error by its code, in the order of statuses."""
    entries: dict[str, tuple[int, str]] = {
        code: (status, HTTP_MESSAGES[status]) for status, code in BY_FRAMEWORK.items()
    }
    kinds = [PortalError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        # Base classes are never raised themselves.
        if kind not in (Conflict, Unavailable):
            entries.setdefault(kind.code, (kind.status, inspect.cleandoc(kind.__doc__ or "")))
    return dict(sorted(entries.items(), key=lambda entry: (entry[1][0], entry[0])))
