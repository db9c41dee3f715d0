"""The API's description. That answers fit it is shown by schemathesis, in tests/faults."""

import pytest
from api_client import CREATED_MEMBERS, Client, answered
from openapi_spec_validator import OpenAPIV31SpecValidator
from signed_in import text_of

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


async def test_document_is_valid_has_the_documented_shapes_and_a_page(client: Client) -> None:
    spec = await answered(await client.get("/api/openapi.json"))
    OpenAPIV31SpecValidator(spec).validate()
    shapes = spec["components"]["schemas"]
    for name, members in MEMBERS.items():
        assert set(shapes[name]["properties"]) == set(shapes[name]["required"]) == members, name
    creation = spec["paths"]["/api/videos"]["post"]
    assert " ".join(creation["responses"]) == CREATION
    assert creation["security"] == [{}, {"token": ["videos:write"]}, {"session": []}]
    # The only type of a file that some generators of clients know.
    caption_file = spec["paths"]["/api/videos/{id}/captions"]["post"]["requestBody"]["content"]
    assert "application/octet-stream" in caption_file
    page = await text_of(await client.get("/api/docs"))
    operations = [
        operation["operationId"] for path in spec["paths"].values() for operation in path.values()
    ]
    for name in (*operations, "video_not_found", "method_not_allowed", "database_unavailable"):
        assert page.count(f'id="{name}"') == 1, name
