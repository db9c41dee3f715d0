"""Request bodies: what is read as JSON, and the rules of its members."""

from typing import Any

import pytest
from api_client import Client, faults, problem, send
from pydantic import BaseModel, ValidationError

from portal.web.api.json_bodies import field_errors
from portal.web.api.videos import CreatedVideo, CreateVideoRequest, PresignRequest, RetrievedVideo

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
TYPES = "Choose 'video/mp4' or 'video/quicktime'."
UNKNOWN = "There is no category with this id. See GET /api/categories."
RANGE = "Give an integer from 1 to 32767."
SHORTEN = "Shorten this to at most"
EMPTY = "This may not be empty."
SURROGATE = "Remove the lone surrogate; send valid Unicode."


def refusals(shape: type[BaseModel], body: Any) -> dict[str, str]:
    """The message for each pointer at fault; nothing when the body is taken."""
    try:
        shape.model_validate(body, context=CATEGORIES, by_alias=True, by_name=False)
    except ValidationError as exc:
        return {fault.pointer: fault.message for fault in field_errors(exc)}
    return {}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (None, ["a.mp4", "a.MP4", "a b.mOv", "a.b.c.mp4", "..mp4", " .mp4", "x" * 251 + ".mp4"]),
        (None, ["видео 🎬.mp4", "\u200fشريط\u202e.mp4", "😀" * 251 + ".mp4"]),
        (EXTENSION, ["noextension", ".mp4", "a.", "a.mp4.", "a.m p", "a.mp4 ", "."]),
        (NAME_ALONE, ["a/b.mp4", "a\\b.mp4", "../a.mp4", "a\nb.mp4", "a.mp4\n", "a\x85.mp4"]),
        ("Shorten this to at most 255 characters.", ["x" * 252 + ".mp4"]),
        (EMPTY, [""]),
    ],
    ids=["taken", "of any language", "no extension", "not a name alone", "long", "empty"],
)
def test_file_name_is_one_with_an_extension(words: str | None, names: list[str]) -> None:
    for name in names:
        found = refusals(PresignRequest, {"fileName": name, "contentType": "video/mp4"})
        assert found == ({} if words is None else {"/fileName": words}), name


def test_content_type_is_one_of_two() -> None:
    for kind in ("video/webm", "VIDEO/MP4", "video/mp4; a=b", "", None, 1, ["video/mp4"], {}):
        found = refusals(PresignRequest, {"fileName": "a.mp4", "contentType": kind})
        assert found == {"/contentType": TYPES}, kind


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        *(
            ({"categoryIds": [1, it]}, {"/categoryIds/1": "Give an integer."})
            for it in (1.0, 1.5, True, "1", None, [], {})
        ),
        *(
            ({"categoryIds": [it]}, {"/categoryIds/0": RANGE})
            for it in (0, -1, 32768, 2**63, 10**4000)
        ),
        ({"categoryIds": [3, 1, 4]}, {"/categoryIds/0": UNKNOWN, "/categoryIds/2": UNKNOWN}),
        *(({"categoryIds": it}, {"/categoryIds": "Give an array."}) for it in (None, 1, "1", {})),
        ({"categoryIds": []}, {"/categoryIds": EMPTY}),
        ({"categoryIds": [1] * 64}, {}),
        ({"categoryIds": [1] * 65}, {"/categoryIds": "Give at most 64."}),
        ({"title": "😀" * 200, "description": "😀" * 5000, "tags": "😀" * 500}, {}),
        ({"title": "x" * 201}, {"/title": f"{SHORTEN} 200 characters."}),
        (
            {"description": "x" * 5001},
            {"/description": "Shorten this to at most 5,000 characters."},
        ),
        ({"tags": "x" * 501}, {"/tags": f"{SHORTEN} 500 characters."}),
        *(
            ({"title": it}, {"/title": "Give a title; it may not be blank."})
            for it in (" ", "\n\t", "\u00a0\u2003")
        ),
        ({"title": "", "description": "", "tags": ""}, {"/title": EMPTY}),
    ],
    ids=lambda it: repr(it)[:40],
)
def test_members_of_a_video_have_rules(changes: dict[str, Any], expected: dict[str, str]) -> None:
    assert refusals(CreateVideoRequest, {**VIDEO, **changes}) == expected


@pytest.mark.parametrize("member", ["title", "description", "tags", "fileName", "key"])
def test_texts_are_strings_that_the_database_can_hold(member: str) -> None:
    values = {"a\0.mp4": "Remove the NUL character.", "a\ud800.mp4": SURROGATE}
    values |= {f"a{chr(0xDFFF)}.mp4": SURROGATE}
    for value, words in [*values.items(), *((it, "Give a string.") for it in (None, 1, True, []))]:
        assert refusals(CreateVideoRequest, {**VIDEO, member: value}) == {f"/{member}": words}


def test_all_missing_members_are_named() -> None:
    missing = {f"/{member}": "This member is required." for member in VIDEO}
    assert refusals(CreateVideoRequest, {}) == missing


def test_retrieval_record_differs_by_the_playback_address_alone() -> None:
    created, retrieved = CreatedVideo.model_fields, RetrievedVideo.model_fields
    assert set(retrieved) - set(created) == {"playback_url"}
    assert set(created) <= set(retrieved)
    assert not issubclass(RetrievedVideo, CreatedVideo)


PRESIGN = "/api/videos/presign"
GOOD = b'{"fileName": "a.mp4", "contentType": "video/mp4"}'
MALFORMED = {
    "empty": b"",
    "blank": b"  \n",
    "cut off": GOOD[:-1],
    "two documents": GOOD + GOOD,
    "trailing comma": b'{"fileName": "a.mp4",}',
    "form": b"fileName=a.mp4&contentType=video/mp4",
    "NaN": b'{"fileName": "a.mp4", "contentType": NaN}',
    "Infinity": b"[Infinity, -Infinity]",
    "raw control character": b'{"fileName": "a\n.mp4", "contentType": "video/mp4"}',
    "invalid UTF-8": GOOD.replace(b"a.mp4", b"\xff.mp4"),
    "surrogate in UTF-8": GOOD.replace(b"a.mp4", b"\xed\xa0\x80.mp4"),
    "UTF-16": GOOD.decode().encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + GOOD,
    "nested arrays": b"[" * 60_000 + b"]" * 5_000,
    "nested objects": b'{"a":' * 13_000,
    "closed nested arrays": b"[" * 32_000 + b"]" * 32_000,
}


async def test_body_is_one_json_object_in_utf_8_of_at_most_64_kib(client: Client) -> None:
    for name, body in MALFORMED.items():
        response = await send(client, PRESIGN, body)
        assert response.status_code == 400, name
        await problem(response, 400, "malformed_json")
    for body in (b"[]", b"[{}]", b"1", b"1e999", b'"text"', b"null", b"true"):
        assert await faults(await send(client, PRESIGN, body)) == {"": "Send one JSON object."}
    assert (await send(client, PRESIGN, GOOD.ljust(65_536))).status_code == 200
    large = await send(client, PRESIGN, GOOD.ljust(65_537))
    await problem(large, 413, "request_entity_too_large")


async def test_body_has_to_be_announced_as_json(client: Client) -> None:
    for taken in ("application/json", "Application/JSON;charset=UTF-8"):
        assert (await send(client, PRESIGN, GOOD, taken)).status_code == 200
    others = [None, "text/plain", "application/problem+json", "text/json", "multipart/form-data"]
    others += ["", "application/x-www-form-urlencoded", "application/jsonx", "garbage"]
    for content_type in others:
        response = await send(client, PRESIGN, GOOD, content_type)
        await problem(response, 415, "unsupported_media_type")
