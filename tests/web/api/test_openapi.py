"""The OpenAPI document says what the API does, no less, and nothing else."""

import asyncio
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import uuid4

import pytest
from api_client import (
    CREATED_MEMBERS,
    Client,
    answered,
    app_client,
    metadata,
    presign,
    problem,
    published,
    put,
)
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator
from quart import Quart, Response
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from signed_in import Sender, make_account, make_video, program, token_of
from test_docs import concrete

from portal import errors
from portal.config import Config
from portal.database.models import Video
from portal.database.states import Scope
from portal.uploads.quotas import Quota
from portal.web.server.credentials import PLAIN_COOKIE, SECURE_COOKIE

STATUSES = {
    ("get", "/api/categories"): "200 429 503",
    ("post", "/api/videos/presign"): "200 400 408 409 413 415 422 429 503",
    ("post", "/api/videos"): "200 201 400 408 409 413 415 422 429 503",
    ("get", "/api/videos/{id}"): "200 304 404 429 503",
    ("get", "/api/videos/{id}/transcode"): "200 404 429 503",
    ("post", "/api/videos/{id}/transcode"): "202 404 409 429 503",
    ("get", "/api/videos/{id}/metadata"): "200 304 404 429 503",
    ("put", "/api/videos/{id}/metadata"): "200 400 404 408 412 413 415 422 428 429 503",
    ("get", "/api/videos/{id}/access"): "200 304 404 429 503",
    ("put", "/api/videos/{id}/access"): "200 400 404 408 412 413 415 422 428 429 503",
    ("post", "/api/videos/{id}/deletion"): "202 404 429 503",
    ("post", "/api/videos/{id}/playback-links"): "201 400 404 408 409 413 415 422 429 503",
    ("get", "/api/videos/{id}/playback-links"): "200 404 429 503",
    ("delete", "/api/videos/{id}/playback-links/{link_id}"): "204 404 429 503",
    ("post", "/api/uploads"): "200 201 400 404 408 409 413 415 422 429 503",
    ("get", "/api/uploads/{id}"): "200 404 429 503",
    ("delete", "/api/uploads/{id}"): "204 404 409 429 503",
    ("post", "/api/uploads/{id}/parts/{number}"): "200 404 409 429 503",
    ("post", "/api/uploads/{id}/complete"): "200 404 409 429 503",
}
# What refuses credentials, where they are looked at.
REFUSALS = "401 403"
# By operation, the scope that a token needs.
SCOPES = {
    None: {"categories"},
    "videos:read": {"get_video", "get_transcode", "get_metadata"},
    "videos:write": {
        *("presign", "create_video", "retry_transcode", "put_metadata", "start_upload"),
        *("get_upload", "sign_part", "complete_upload", "discard_upload"),
        *("get_access", "put_access"),
        *("create_playback_link", "list_playback_links", "revoke_playback_link"),
    },
    "videos:delete": {"delete"},
}
# Whatever is asked of it, the portal may be asked under a name that is not its own.
ALWAYS = "421"
MEMBERS = {
    "CategoryList": {"categories"},
    "CategoryRecord": {"id", "name"},
    "PresignRequest": {"fileName", "contentType"},
    "PresignResponse": {"uploadUrl", "key"},
    "CreateVideoRequest": {"title", "description", "categoryIds", "tags", "fileName", "key"},
    "VideoMetadata": {"title", "description", "categoryIds", "tags"},
    "AccessRecord": {"visibility", "signedInOnly", "embedOrigins"},
    "DeletedVideo": {"id"},
    "CreatedVideo": CREATED_MEMBERS,
    "RetrievedVideo": CREATED_MEMBERS | {"playbackUrl"},
    "TranscodeRecord": {
        *("stage", "percent", "secondsLeft", "queuePosition", "failure", "notes", "renditions"),
        *("remaining", "posterUrl", "storyboardUrl"),
    },
    "TranscodeRemaining": {"stage", "percent", "secondsLeft", "queuePosition"},
    "TranscodeFailure": {"code", "message"},
    "TranscodeNote": {"code", "message"},
    "RenditionRecord": {
        *("name", "kind", "state", "width", "height", "frameRate", "codecs", "bandwidth"),
        *("averageBandwidth", "sizeBytes", "language", "copied", "errorCode"),
    },
    "StartUploadRequest": {"key", "sizeBytes"},
    "UploadRecord": {
        *("uploadId", "key", "state", "sizeBytes", "partSizeBytes", "partCount", "parts")
    },
    "StoredPartRecord": {"partNumber", "sizeBytes", "etag"},
    "PartAddress": {"uploadUrl"},
    "PlaybackLinkRequest": {"expiresInSeconds"},
    "CreatedPlaybackLink": {"playbackUrl", "embedUrl", "expiresAt", "id"},
    "PlaybackLinkList": {"links"},
    "PlaybackLinkRecord": {*("playbackUrl", "embedUrl", "expiresAt", "id", "createdAt", "madeBy")},
    "PartsProblem": {"type", "title", "status", "detail", "code", "missingParts"},
    "QuotaProblem": {"type", "title", "status", "detail", "code", "limit", "used", "freeAt"},
    "Problem": {"type", "title", "status", "detail", "code"},
    "ValidationProblem": {"type", "title", "status", "detail", "code", "errors"},
    "Fault": {"pointer", "message"},
}
# Only some of an operation's problems have these members.
OPTIONAL = {"PartsProblem": {"missingParts"}, "QuotaProblem": {"limit", "used", "freeAt"}}
# Those whose 409 may be for a quota.
UNDER_QUOTAS = {"presign", "start_upload", "create_video"}
ENUMS = {
    "UploadState",
    "VideoStatus",
    "TranscodeStage",
    "RenditionStage",
    "Kind",
    "Note",
    "Visibility",
}
# Routes outside the JSON API, by why they are not in its document.
UNDOCUMENTED = {
    "the document itself": {"docs.openapi"},
    "the document as a page": {"docs.docs"},
    "page": {
        *("embedding.embed", "library.index", "pages.upload", "pages.video", "workshop.workshop"),
        *("deletion.confirm_deletion", "table.index"),
    },
    "fragment of a page": {
        *("embedding.stage", "library.progress", "pages.status", "workshop.facts"),
        *("table.progress", "pages.remaining", "pages.share", "pages.related"),
        *("posters.poster", "access.panel"),
    },
    "page of accounts": {
        *("signing_in.form", "signing_in.welcome", "signing_in.set_up"),
        *("account.account", "people.index", "audit.index", "audit.export"),
        *("single_sign_on.begin", "single_sign_on.come_back"),
    },
    "form of a page": {
        *(
            "signing_in.sign_in",
            "signing_in.sign_out",
            "signing_in.accept",
            "signing_in.make_first",
        ),
        *("account.change_password", "account.end_session", "account.end_others"),
        "account.change_name",
        *("account.create_token", "account.revoke_token", "people.invite", "people.change_role"),
        *("people.revoke_invitation", "people.disable", "people.enable", "people.reset"),
        "people.remove",
        *("pages.retry", "pages.retry_status", "pages.retry_remaining", "editing.save"),
        *("editing.save_details", "deletion.delete", "posters.replace_poster"),
        *("access.save", "access.save_panel"),
        *("posters.replace_poster_fragment", "playback_links.make", "playback_links.revoke"),
        *("posters.send_picture", "posters.send_picture_fragment", "bulk_actions.apply"),
    },
    "as oembed.com documents it": {"embedding.oembed"},
    "for process supervisors and load balancers": {"health.healthz", "health.readyz"},
    "for Prometheus": {"metrics.metrics"},
    "redirects a browser to the file": {"downloads.original"},
    "address comes from the API": {"playback.output", "playback.poster", "playback.storyboard"},
    "built files": {"static_files.static_file", "site.style", "site.logo"},
}


async def document(client: Client) -> dict[str, Any]:
    response = await client.get("/api/openapi.json")
    assert response.mimetype == "application/json"
    return await answered(response)


async def test_document_is_valid_openapi_3_1(client: Client) -> None:
    spec = await document(client)
    assert re.fullmatch(r"3\.1\.\d+", spec["openapi"])
    OpenAPIV31SpecValidator(spec).validate()


async def test_document_is_the_same_every_time(client: Client) -> None:
    assert await document(client) == await document(client)


async def test_documents_are_made_once_and_sent_once(
    client: Client, app: Quart, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    provider = app.extensions["QUART_SCHEMA"].openapi_provider
    make = provider.schema
    monkeypatch.setattr(provider, "schema", lambda: made.append(1) or make())
    for path in ("/api/openapi.json", "/api/docs"):
        made.clear()
        first, second = await asyncio.gather(client.get(path), client.get(path))
        assert await first.get_data() == await second.get_data()
        known = {"If-None-Match": first.headers["ETag"]}
        assert (await client.get(path, headers=known)).status_code == 304
        assert first.headers["Cache-Control"] == "no-cache"
        assert len(made) == 1


async def test_every_operation_has_exactly_its_statuses(client: Client) -> None:
    spec = await document(client)
    found = {
        (method, path): set(operation["responses"])
        for path, operations in spec["paths"].items()
        for method, operation in operations.items()
    }
    wanted = {one: set(f"{statuses} {ALWAYS}".split()) for one, statuses in STATUSES.items()}
    for one, statuses in wanted.items():
        if one != ("get", "/api/categories"):
            statuses |= set(REFUSALS.split())
    assert found == wanted


async def test_every_operation_takes_the_credentials_of_its_policy(client: Client) -> None:
    spec = await document(client)
    token, session = (spec["components"]["securitySchemes"][name] for name in ("token", "session"))
    assert (token["type"], token["scheme"]) == ("http", "bearer")
    assert (session["type"], session["in"], session["name"]) == ("apiKey", "cookie", PLAIN_COOKIE)
    scopes = {name: scope for scope, operations in SCOPES.items() for name in operations}
    for operations in spec["paths"].values():
        for operation in operations.values():
            scope = scopes.pop(operation["operationId"])
            # Nothing comes first: a portal without accounts takes everything without credentials.
            wanted = [{}, {"token": [scope]}, {"session": []}] if scope else []
            assert operation["security"] == wanted
    assert scopes == {}


async def test_document_names_the_cookie_of_a_portal_on_https(config: Config) -> None:
    async with app_client(config, public_url="https://videos.example.org") as client:
        spec = await document(client)
    assert spec["components"]["securitySchemes"]["session"]["name"] == SECURE_COOKIE


async def test_refusals_of_credentials_match_the_document(app: Quart, client: Client) -> None:
    spec, video_id = await document(client), (await published(client))["id"]
    owner = await make_account("ann")
    lacking = {scope: await token_of(owner, {*Scope} - {scope}) for scope in Scope}
    for method, path in STATUSES:
        required = spec["paths"][path][method]["security"]
        for scope in [scope for one in required for scope in one.get("token", ())]:
            refused = {"portal_mistyped": 401, lacking[Scope(scope)]: 403}
            for token, status in refused.items():
                address = path.format(id=video_id, number=1, link_id=uuid4())
                response = await program(app, token).ask(method.upper(), address)
                assert response.status_code == status, (method, path)
                await matches(spec, response, method, path)
            if scope != Scope.READ:
                response = await Sender(app).ask(method.upper(), address)
                assert response.status_code == 401, (method, path)
                await matches(spec, response, method, path)


async def test_refusals_for_quotas_match_the_document(app: Quart, client: Client) -> None:
    owner = await make_account("ann")
    spec, sender = await document(client), program(app, await token_of(owner))
    upload = {"fileName": "a.mp4", "contentType": "video/mp4"}
    keys = []
    for _ in range(3):
        signed = await answered(await sender.post("/api/videos/presign", json=upload))
        keys.append(signed["key"])
        if len(keys) < 3:
            assert await put(signed["uploadUrl"], b"a film") == 200
    await Video.filter(id=(await make_video(owner)).id).update(created_at=datetime.now(UTC))
    for quota, path, body in (
        (Quota(videos_per_day=1), "/api/videos/presign", upload),
        (Quota(videos_per_day=1), "/api/videos", metadata(keys[0])),
        (Quota(stored_bytes=1), "/api/videos/presign", upload),
        (Quota(stored_bytes=1), "/api/videos", metadata(keys[1])),
        (Quota(stored_bytes=1), "/api/uploads", {"key": keys[2], "sizeBytes": 6}),
    ):
        app.extensions["portal"] = replace(app.extensions["portal"], quota=quota)
        response = await sender.post(path, json=body)
        code = "video_quota_exceeded" if quota.videos_per_day else "storage_quota_exceeded"
        await problem(response, 409, code)
        await matches(spec, response, "post", path)


async def test_errors_are_documented_as_problems(client: Client) -> None:
    for operations in (await document(client))["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                assert answer["description"]
                kinds = set(answer.get("content", {}))
                if status in ("204", "304"):
                    assert kinds == set()
                elif status < "400":
                    assert kinds == {"application/json"}
                else:
                    assert kinds == {"application/problem+json"}
                    assert target(answer) == problem_shape(operation["operationId"], status)
            for status in ("429", "503"):
                assert "Retry-After" in operation["responses"][status]["headers"]


async def test_shapes_have_exactly_their_members_and_all_are_required(client: Client) -> None:
    shapes = (await document(client))["components"]["schemas"]
    for name, members in MEMBERS.items():
        assert set(shapes[name]["properties"]) == members, name
        assert set(shapes[name]["required"]) == members - OPTIONAL.get(name, set()), name
    assert set(shapes) - set(MEMBERS) == ENUMS


async def test_creation_and_retrieval_are_separate_shapes(client: Client) -> None:
    paths = (await document(client))["paths"]
    create, read = paths["/api/videos"]["post"], paths["/api/videos/{id}"]["get"]
    assert target(create["responses"]["200"]) == target(create["responses"]["201"])
    assert target(create["responses"]["201"]) == "CreatedVideo"
    assert target(read["responses"]["200"]) == "RetrievedVideo"


async def test_limits_and_formats_are_documented(client: Client) -> None:
    spec = await document(client)
    shapes = spec["components"]["schemas"]
    request = shapes["CreateVideoRequest"]["properties"]
    assert (request["title"]["minLength"], request["title"]["maxLength"]) == (1, 200)
    assert request["description"]["maxLength"] == 5_000
    assert request["tags"]["maxLength"] == 500
    assert (request["categoryIds"]["minItems"], request["categoryIds"]["maxItems"]) == (1, 64)
    number = request["categoryIds"]["items"]
    assert (number["type"], number["minimum"], number["maximum"]) == ("integer", 1, 32767)
    record = shapes["CreatedVideo"]["properties"]
    assert record["sizeBytes"]["format"] == "int64"
    assert record["createdAt"]["format"] == record["updatedAt"]["format"] == "date-time"
    assert shapes["VideoStatus"]["enum"] == ["processing", "ready", "failed"]
    for path in ("/api/videos", "/api/videos/presign"):
        assert spec["paths"][path]["post"]["requestBody"]["required"] is True


async def test_only_what_is_asked_of_a_video_in_the_address_may_be_left_out(client: Client) -> None:
    optional = {
        (path, method, parameter["in"], parameter["name"])
        for path, operations in (await document(client))["paths"].items()
        for method, operation in operations.items()
        for parameter in operation.get("parameters", ())
        if not parameter["required"]
    }
    assert optional == {("/api/videos", "post", "query", "visibility")}


@pytest.mark.parametrize(
    ("max_source_bytes", "maximum"), [(5_000_000, 5_000_000), (0, 5 * 1024**4)]
)
async def test_largest_documented_upload_is_the_configured_one(
    config: Config, max_source_bytes: int, maximum: int
) -> None:
    async with app_client(config, max_source_bytes=max_source_bytes) as client:
        spec = await document(client)
    size = spec["components"]["schemas"]["StartUploadRequest"]["properties"]["sizeBytes"]
    assert (size["minimum"], size["maximum"]) == (1, maximum)


async def test_answers_of_the_running_api_match_the_document(client: Client) -> None:
    spec = await document(client)
    await matches(spec, await client.get("/api/categories"), "get", "/api/categories")
    record = await published(client)
    body = metadata(record["storageKey"])
    for path, sent in {"/api/videos/presign": {}, "/api/videos": {"categoryIds": ["x"]}}.items():
        await matches(spec, await client.post(path, json=sent), "post", path)
        await matches(spec, await client.post(path, data=b"{}"), "post", path)
        await matches(spec, await client.post(path, json="x" * 70_000), "post", path)
        bad = await client.post(path, data=b"{", headers={"Content-Type": "application/json"})
        await matches(spec, bad, "post", path)
    upload = {"fileName": "a.mp4", "contentType": "video/mp4"}
    signed = await client.post("/api/videos/presign", json=upload)
    await matches(spec, signed, "post", "/api/videos/presign")
    for change in ({}, {"title": "Other"}, {"key": (await presign(client))["key"]}):
        response = await client.post("/api/videos", json={**body, **change})
        await matches(spec, response, "post", "/api/videos")
    for video_id in (record["id"], str(uuid4())):
        response = await client.get(f"/api/videos/{video_id}")
        await matches(spec, response, "get", "/api/videos/{id}")
        path = "/api/videos/{id}/transcode"
        await matches(spec, await client.get(path.format(id=video_id)), "get", path)
        await matches(spec, await client.post(path.format(id=video_id)), "post", path)


async def test_answers_about_uploads_match_the_document(client: Client) -> None:
    spec = await document(client)
    start, one, part, complete = (path for path in spec["paths"] if path.startswith("/api/uploads"))
    key = (await presign(client))["key"]
    names = {"id": key[7:39], "number": 1}
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    asked = [
        *(("post", start, body) for body in ({"key": key}, {"key": "x", "sizeBytes": 1})),
        *(("post", path, None) for path in (part, complete)),
        ("get", one, None),
        *(("post", start, {"key": key, "sizeBytes": size}) for size in (3, 3, 4)),
        *(("post", path, None) for path in (part, complete)),
        *(("get", one, None), ("delete", one, None), ("post", complete, None)),
    ]
    for method, path, body in asked:
        send = getattr(client, method)
        address = path.format(**names)
        await matches(spec, await send(address, **({"json": body} if body else {})), method, path)
        if method != "get":
            await matches(spec, await send(address, headers=elsewhere), method, path)
        if path != start:
            unknown = path.format(id="0" * 32, number=1)
            await matches(spec, await send(unknown), method, path)


async def test_every_route_is_documented_or_listed_with_its_reason(app: Quart) -> None:
    spec = await document(app.test_client())
    documented = {
        (method.upper(), path)
        for path, operations in spec["paths"].items()
        for method in operations
    }
    undocumented, seen = set().union(*UNDOCUMENTED.values()), set()
    for rule in app.url_map.iter_rules():
        if rule.endpoint in undocumented:
            seen.add(rule.endpoint)
            # A form wants proof that the request comes from the portal's own pages.
            is_form = rule.endpoint in UNDOCUMENTED["form of a page"]
            methods = {"POST"} if is_form else {"GET", "HEAD"}
            assert rule.methods == {*methods, "OPTIONS"}, rule
            continue
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            assert (method, path) in documented, f"{method} {path} has no declared policy"
    assert seen == undocumented


async def test_readable_page_explains_every_operation_and_error(client: Client) -> None:
    spec = await document(client)
    response = await client.get("/api/docs")
    assert response.status_code == 200
    assert response.mimetype == "text/html"
    page = (await response.get_data()).decode()
    for path, operations in spec["paths"].items():
        assert f"<code>{path}</code>" in page
        for operation in operations.values():
            assert f'id="{operation["operationId"]}"' in page
    assert "categoryIds" in page
    assert page.count("Authorization: Bearer $PORTAL_TOKEN") == 1
    for scope, operations in SCOPES.items():
        words = f"scope <code>{scope}</code>" if scope else "Takes no credentials."
        assert page.count(words) == len(operations)
    for code in {error.code for error in concrete(errors.PortalError)} | {
        "method_not_allowed",
        "request_entity_too_large",
    }:
        assert f'id="{code}"' in page, code


async def test_readable_page_needs_no_other_site(client: Client) -> None:
    page = (await (await client.get("/api/docs")).get_data()).decode()
    loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="([^"]*)"', page)
    assert loaded
    assert all(address.startswith("/") and not address.startswith("//") for address in loaded)


def problem_shape(operation_id: str, status: str) -> str:
    """The shape that documents an error."""
    if (operation_id, status) == ("complete_upload", "409"):
        return "PartsProblem"
    if operation_id in UNDER_QUOTAS and status == "409":
        return "QuotaProblem"
    return "ValidationProblem" if status == "422" else "Problem"


def target(answer: dict[str, Any]) -> str:
    """The name of the shape of an answer's body."""
    (content,) = answer["content"].values()
    return str(content["schema"]["$ref"]).rpartition("/")[2]


async def matches(spec: dict[str, Any], response: Response, method: str, path: str) -> None:
    """Check that an answer is one of those documented for the operation."""
    documented = spec["paths"][path][method]["responses"][str(response.status_code)]
    if "content" not in documented:
        assert not await response.get_data()
        return
    schema = documented["content"][response.mimetype]["schema"]
    body = json.loads(await response.get_data())
    validator(json.dumps(spec), json.dumps(schema)).validate(body)
    assert all(name in response.headers for name in documented.get("headers", {}))


@lru_cache
def validator(spec: str, schema: str) -> Draft202012Validator:
    resource = Resource(contents=json.loads(spec), specification=DRAFT202012)
    reference = json.loads(schema)["$ref"]
    return Draft202012Validator(
        {"$ref": f"urn:api{reference}"},
        registry=Registry().with_resource("urn:api", resource),
        format_checker=FormatChecker(),
    )
