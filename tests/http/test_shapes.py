"""Request bodies: the accepted JSON, and the rules of its members."""

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from api_client import Client, faults, problem
from pydantic import TypeAdapter, ValidationError
from quart import Response

from portal.features.publishing.api import CreateVideoRequest, PresignRequest
from portal.http.schemas.access import AccessRecord
from portal.http.schemas.base import ClosedShape
from portal.http.schemas.validation import field_errors

pytestmark = pytest.mark.shared_app

CATEGORIES = {1, 2, 32767}
VIDEO = {
    "title": "t",
    "description": "",
    "categoryIds": [1],
    "tags": "",
    "fileName": "a.mp4",
    "key": "videos/0.mp4",
}
EXTENSION = "End the file name with an extension like .mp4."
NAME_ALONE = "Give the file's name alone: no path separators or control characters."
UNKNOWN = "There is no category with this id. See GET /api/categories."
SHORTEN = "Shorten this to at most"
TITLE = "Give the video a title."


def refusals(shape: type[ClosedShape], body: Any) -> dict[str, str]:
    """Return the message for each invalid pointer; empty for a valid body."""
    try:
        shape.model_validate(body, context=CATEGORIES, by_alias=True, by_name=False)
    except ValidationError as exc:
        return {fault.pointer: fault.message for fault in field_errors(exc, shape)}
    return {}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (None, ["a.mp4", "a b.mOv", "..mp4", "x" * 251 + ".mp4", "\u200fشريط\u202e 🎬.mp4"]),
        (EXTENSION, ["noextension", ".mp4", "a.", "a.mp4.", "a.m p"]),
        (NAME_ALONE, ["a/b.mp4", "a\\b.mp4", "a\nb.mp4", "a.mp4\n", "a\x85.mp4"]),
        ("Shorten this to at most 255 characters.", ["x" * 252 + ".mp4"]),
    ],
    ids=["taken", "no extension", "not a name alone", "long"],
)
def test_file_name_is_one_with_an_extension(words: str | None, names: list[str]) -> None:
    for name in names:
        messages = refusals(PresignRequest, {"fileName": name, "contentType": "video/mp4"})
        assert messages == ({} if words is None else {"/fileName": words}), name


def test_content_type_is_that_of_mp4_or_quicktime() -> None:
    body = {"fileName": "a/b.mp4", "contentType": "video/webm"}
    assert refusals(PresignRequest, body).keys() == {"/fileName", "/contentType"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        *(
            ({"categoryIds": [1, value]}, {"/categoryIds/1": "Give an integer."})
            for value in (1.5, True, "1", None)
        ),
        ({"categoryIds": [0]}, {"/categoryIds/0": "Give 1 or more."}),
        ({"categoryIds": [10**4000]}, {"/categoryIds/0": "Give 32,767 or less."}),
        ({"categoryIds": [3, 1, 4]}, {"/categoryIds/0": UNKNOWN, "/categoryIds/2": UNKNOWN}),
        ({"categoryIds": 1}, {"/categoryIds": "Give an array."}),
        ({"categoryIds": []}, {"/categoryIds": "Choose at least one."}),
        ({"categoryIds": [1] * 64}, {}),
        ({"categoryIds": [1] * 65}, {"/categoryIds": "Give at most 64."}),
        ({"title": "😀" * 200, "description": "😀" * 5000, "tags": "😀" * 500}, {}),
        ({"title": "x" * 201}, {"/title": f"{SHORTEN} 200 characters."}),
        (
            {"description": "x" * 5001},
            {"/description": "Shorten this to at most 5,000 characters."},
        ),
        ({"tags": "x" * 501}, {"/tags": f"{SHORTEN} 500 characters."}),
        ({"title": "\n\u2003"}, {"/title": TITLE}),
        ({"title": "", "description": "", "tags": ""}, {"/title": TITLE}),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_members_of_a_video_have_rules(changes: dict[str, Any], expected: dict[str, str]) -> None:
    assert refusals(CreateVideoRequest, {**VIDEO, **changes}) == expected


@pytest.mark.parametrize("member", ["title", "description", "tags", "fileName", "key"])
def test_texts_are_strings_that_the_database_can_hold(member: str) -> None:
    for value, words in (
        ("a\0.mp4", "Remove the NUL character."),
        ("a\ud800.mp4", "Remove the lone surrogate; send valid Unicode."),
        (1, "Give a string."),
    ):
        assert refusals(CreateVideoRequest, {**VIDEO, member: value}) == {f"/{member}": words}


@pytest.mark.parametrize(
    ("changes", "pointer", "remedy"),
    [
        ({"visibility": "hidden"}, "/visibility", "Choose 'public', 'unlisted' or 'private'."),
        ({"signedInOnly": True}, "/signedInOnly", "Choose private"),
        ({"signedInOnly": 1}, "/signedInOnly", "Give true or false."),
        ({"embedOrigins": "https://a.example"}, "/embedOrigins", "Give an array."),
        ({"embedOrigins": ["https://a.example", "*"]}, "/embedOrigins/1", "Give a site like"),
        ({"embedOrigins": ["https://a.example/b"]}, "/embedOrigins/0", "without a path"),
        ({"embedOrigins": ["https://*.com"]}, "/embedOrigins/0", "https://*.example.org"),
        ({"embedOrigins": ["https://a.example; x"]}, "/embedOrigins/0", "Give a site like"),
        ({"embedOrigins": ["https://A.example"]}, "/embedOrigins/0", "small letters"),
        (
            {"embedOrigins": [f"https://{value}.example" for value in range(21)]},
            "/embedOrigins",
            "20",
        ),
    ],
)
def test_audience_of_a_video_has_rules(changes: dict[str, Any], pointer: str, remedy: str) -> None:
    body = {"visibility": "public", "signedInOnly": False, "embedOrigins": [], **changes}
    [(invalid, words)] = refusals(AccessRecord, body).items()
    assert invalid == pointer
    assert remedy in words


def body_shapes(base: type[ClosedShape] = ClosedShape) -> Iterator[type[ClosedShape]]:
    """Yield the shapes of JSON in bodies; those of queries and headers are made of texts."""
    for shape in base.__subclasses__():
        if not shape.__name__.endswith(("Query", "Headers")):
            yield shape
        yield from body_shapes(shape)


@pytest.mark.usefixtures("app")
async def test_numbers_are_numbers() -> None:
    """Neither true and false nor texts, which pydantic reads as numbers unless told otherwise."""
    checked = set()
    for shape in body_shapes():
        for name, field in shape.model_fields.items():
            if field.annotation not in (int, float):
                continue
            adapter = TypeAdapter(Annotated[field.annotation, *field.metadata])
            checked.add(name)
            for value in (False, True, "60", None, [60]):
                with pytest.raises(ValidationError):
                    adapter.validate_python(value)
    assert checked >= {"start_seconds", "end_seconds", "expires_in_seconds"}


PRESIGN = "/api/videos/presign"
GOOD = b'{"fileName": "a.mp4", "contentType": "video/mp4"}'
MALFORMED = {
    "empty": b"",
    "cut off": GOOD[:-1],
    "two documents": GOOD + GOOD,
    "a member named twice": GOOD.replace(b"{", b'{"fileName": "b.mp4", '),
    "NaN": b'{"fileName": "a.mp4", "contentType": NaN}',
    "invalid UTF-8": GOOD.replace(b"a.mp4", b"\xff.mp4"),
    "UTF-16": GOOD.decode().encode("utf-16"),
    "nested arrays": b"[" * 60_000 + b"]" * 5_000,
}


async def send(
    client: Client, body: bytes, content_type: str | None = "application/json"
) -> Response:
    """POST these very bytes."""
    headers = {} if content_type is None else {"Content-Type": content_type}
    return await client.post(PRESIGN, data=body, headers=headers)


async def test_body_is_one_json_object_in_utf_8_of_at_most_64_kib(client: Client) -> None:
    for name, body in MALFORMED.items():
        response = await send(client, body)
        assert response.status_code == 400, name
        await problem(response, 400, "malformed_json")
    for body in (b"[]", b"1e999", b"null"):
        assert await faults(await send(client, body)) == {"": "Send one JSON object."}
    assert (await send(client, GOOD.ljust(65_536))).status_code == 200
    large = await send(client, GOOD.ljust(65_537))
    await problem(large, 413, "request_entity_too_large")


async def test_body_requires_a_json_content_type(client: Client) -> None:
    for accepted in ("application/json", "Application/JSON;charset=UTF-8"):
        assert (await send(client, GOOD, accepted)).status_code == 200
    for content_type in (None, "text/plain", "application/problem+json", "multipart/form-data"):
        response = await send(client, GOOD, content_type)
        await problem(response, 415, "unsupported_media_type")
