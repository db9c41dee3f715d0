"""Unknown members and parameters of requests are refused, with the nearest known name."""

from typing import Any

import pytest
from api_client import Client, answered, counts, faults, metadata, presign, uploaded
from guarded_routes import Route, routes
from page_rows import make_row
from quart import Quart
from signed_in import Sender
from webhook_receiver import SETTINGS, add_webhook

from portal.http.composition import WebContext

pytestmark = pytest.mark.shared_app(**SETTINGS)

# Routes that are no part of the JSON API, and those whose body is a text.
OTHER_PATHS = ("/api/docs", "/api/openapi.json")
TEXT_ROUTES = {
    ("POST", "/api/videos/<string:id>/captions"),
    ("PUT", "/api/videos/<string:id>/captions/<language:language>"),
    ("POST", "/api/playback"),
}
# Such as `page` of another portal's API, near to no name here.
UNKNOWN = "zzzz"


@pytest.fixture
async def own_paths(app: Quart, owner: Sender) -> list[tuple[Route, str]]:
    """Each route of the JSON API with an address at which something is."""
    webhook = await add_webhook(owner, "https://example.org/hook")
    group = await answered(await owner.post("/api/groups", json={"name": "Staff"}), 201)
    upload = (await presign(owner))["key"].split("/")[1].partition(".")[0]
    series = await answered(await owner.post("/api/series", json={"title": "Birds"}), 201)
    ids = {
        "webhooks": webhook["id"],
        "groups": group["id"],
        "uploads": upload,
        "videos": str((await make_row()).id),
    }
    return [
        (route, route.path(ids.get(route.rule.split("/")[2], ""), series_id=series["id"]))
        for route in routes(app)
        if route.rule.startswith("/api/") and route.rule not in OTHER_PATHS
    ]


async def test_no_route_takes_unknown_parameters(
    owner: Sender, own_paths: list[tuple[Route, str]]
) -> None:
    for route, path in own_paths:
        if route.method == "HEAD":
            continue
        headers = {"Accept": "*/*"}
        response = await owner.ask(route.method, f"{path}?{UNKNOWN}=1", headers=headers)
        assert response.status_code == 422, route
        assert (await faults(response))[f"/{UNKNOWN}"] == "This parameter is not known here."


async def test_no_route_takes_unknown_members(
    owner: Sender, own_paths: list[tuple[Route, str]]
) -> None:
    for route, path in own_paths:
        if route.method in ("GET", "HEAD") or (route.method, route.rule) in TEXT_ROUTES:
            continue
        headers = {"If-Match": "*"}
        response = await owner.ask(route.method, path, json={UNKNOWN: 1}, headers=headers)
        assert response.status_code == 422, route
        assert (await faults(response))[f"/{UNKNOWN}"] == "This member is not known here.", route


@pytest.mark.parametrize(
    ("method", "path", "body", "pointer", "remedy"),
    [
        ("PATCH", "videos/{video}", {"categories": [1]}, "/categories", "`categoryIds`"),
        (
            "PUT",
            "videos/{video}/chapters",
            {"chapters": [{"startSeconds": 0, "titel": "a"}]},
            "/chapters/0/titel",
            "`title`",
        ),
        ("GET", "events?afer=latest", None, "/afer", "`after`"),
    ],
)
async def test_misspelt_name_is_refused_with_the_right_one(
    client: Client, method: str, path: str, body: Any, pointer: str, remedy: str
) -> None:
    path = path.format(video=(await make_row()).id)
    headers = {"If-Match": "*"}
    response = await client.open(f"/api/{path}", method=method, json=body, headers=headers)
    message = (await faults(response))[pointer]
    assert message.startswith(("This member is not known here.", "This parameter is not known"))
    assert remedy in message


@pytest.mark.parametrize("name", ["visibility", "visiblity"])
async def test_visibility_in_the_body_of_a_creation_names_the_parameter(
    client: Client, resources: WebContext, name: str
) -> None:
    body = metadata(await uploaded(client))
    response = await client.post("/api/videos", json={**body, name: "private"})
    [(pointer, message)] = (await faults(response)).items()
    assert pointer == f"/{name}"
    assert "POST /api/videos?visibility=private" in message
    assert await counts(resources.config.database_url) == (0, 0)
    await answered(await client.post("/api/videos?visibility=private", json=body), 201)
