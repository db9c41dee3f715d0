"""The API's description. That answers fit it is shown by schemathesis, in tests/faults."""

from typing import Any

import pytest
from api_client import CREATED_MEMBERS, Client, answered
from openapi_spec_validator import OpenAPIV31SpecValidator

pytestmark = pytest.mark.shared_app

# The documented shapes, with exactly these members, all of them required.
MEMBERS = {
    "CategoryList": {"categories"},
    "CategoryRecord": {"id", "name"},
    "PresignRequest": {"fileName", "contentType"},
    "PresignResponse": {"uploadUrl", "key"},
    "CreateVideoRequest": {"title", "description", "categoryIds", "tags", "fileName", "key"},
    "CreatedVideo": CREATED_MEMBERS,
    "RetrievedVideo": CREATED_MEMBERS | {"playbackUrl"},
}
CREATION = "200 201 400 401 403 408 409 413 415 421 422 429 503"
EDIT = "200 400 401 403 404 408 412 413 415 421 422 428 429 503"


async def document(client: Client) -> dict[str, Any]:
    return await answered(await client.get("/api/openapi.json"))


async def test_document_is_valid_openapi_3_1_and_has_the_documented_shapes(client: Client) -> None:
    spec = await document(client)
    OpenAPIV31SpecValidator(spec).validate()
    shapes = spec["components"]["schemas"]
    for name, members in MEMBERS.items():
        assert set(shapes[name]["properties"]) == set(shapes[name]["required"]) == members, name


async def test_statuses_and_credentials_follow_from_the_kind_of_route(client: Client) -> None:
    paths = (await document(client))["paths"]
    creation = paths["/api/videos"]["post"]
    assert " ".join(creation["responses"]) == CREATION
    assert creation["security"] == [{}, {"token": ["videos:write"]}, {"session": []}]
    edit = paths["/api/videos/{id}/metadata"]["put"]
    assert " ".join(edit["responses"]) == EDIT
    refusal = edit["responses"]["422"]["content"]["application/problem+json"]["schema"]
    assert refusal == {"$ref": "#/components/schemas/ValidationProblem"}
    assert set(edit["responses"]["200"]["headers"]) == {"ETag"}
    assert paths["/api/categories"]["get"]["security"] == []


async def test_page_has_an_anchor_for_every_operation_and_error(client: Client) -> None:
    spec = await document(client)
    response = await client.get("/api/docs")
    assert response.status_code == 200
    page = (await response.get_data()).decode()
    operations = [it["operationId"] for of in spec["paths"].values() for it in of.values()]
    errors = ("video_not_found", "key_already_used", "method_not_allowed", "database_unavailable")
    for name in (*operations, *errors):
        assert page.count(f'id="{name}"') == 1, name
