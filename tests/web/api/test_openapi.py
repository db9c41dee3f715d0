"""The OpenAPI document says what the API does, no less, and nothing else."""

import json
import re
from functools import lru_cache
from typing import Any
from uuid import uuid4

from api_client import (
    CREATED_MEMBERS,
    Client,
    answered,
    metadata,
    presign,
    published,
)
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator
from quart import Quart, Response
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from test_docs import concrete

from portal import errors

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


async def test_shapes_have_exactly_their_members_and_all_are_required(client: Client) -> None:
    shapes = (await document(client))["components"]["schemas"]
    for name, members in MEMBERS.items():
        assert set(shapes[name]["properties"]) == members, name
        assert set(shapes[name]["required"]) == members - OPTIONAL.get(name, set()), name
    assert set(shapes) - set(MEMBERS) == ENUMS


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
