"""The API's description. That answers fit it is shown by schemathesis, in tests/faults."""

import pytest
from api_client import CREATED_MEMBERS, Client, answered
from openapi_spec_validator import OpenAPIV31SpecValidator
from signed_in import text_of

pytestmark = pytest.mark.shared_app

# The documented shapes, with exactly these required members.
MEMBERS = {
    "CategoryList": {"categories"},
    "CategoryRecord": {"id", "name"},
    "PresignRequest": {"fileName", "contentType"},
    "PresignResponse": {"uploadUrl", "key"},
    "CreateVideoRequest": {"title", "description", "categoryIds", "tags", "fileName", "key"},
    "CreatedVideo": CREATED_MEMBERS,
    "RetrievedVideo": CREATED_MEMBERS | {"playbackUrl"},
}
# Members that a request may ask for in addition.
INCLUDED = {"RetrievedVideo": {"details", "passthrough", "views"}}
CREATION = "200 201 400 401 403 408 409 413 415 421 422 429 503"


async def test_document_is_valid_has_the_documented_shapes_and_a_page(client: Client) -> None:
    spec = await answered(await client.get("/api/openapi.json"))
    OpenAPIV31SpecValidator(spec).validate()
    shapes = spec["components"]["schemas"]
    for name, members in MEMBERS.items():
        assert set(shapes[name]["required"]) == members, name
        assert set(shapes[name]["properties"]) == members | INCLUDED.get(name, set()), name
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


async def test_members_and_parameters_have_descriptions(client: Client) -> None:
    spec = await answered(await client.get("/api/openapi.json"))
    test_event = spec["webhooks"]["webhook.test"]["post"]["requestBody"]["content"]
    shapes = {
        **spec["components"]["schemas"],
        "TestEvent": test_event["application/json"]["schema"],
    }
    members = {
        f"{name}.{member}": schema
        for name, shape in shapes.items()
        for member, schema in shape.get("properties", {}).items()
    }
    parameters = {
        f"{path} {parameter['name']}": parameter
        for path, operations in spec["paths"].items()
        for operation in operations.values()
        for parameter in operation["parameters"]
    }
    assert len(members) > 300
    assert len(parameters) > 80
    for name, part in (members | parameters).items():
        assert part.get("description"), name


async def test_parameters_have_no_default_that_clients_would_send(client: Client) -> None:
    spec = await answered(await client.get("/api/openapi.json"))
    for operations in spec["paths"].values():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                schema = parameter["schema"]
                assert schema.get("default", "") is not None, parameter
                assert {"type": "null"} not in schema.get("anyOf", ()), parameter
                assert parameter["in"] == "query" or "default" not in schema, parameter
