"""What is taken as a request body at all: JSON, in UTF-8, of at most 64 KiB."""

import json

import pytest
from api_client import Client, faults, problem, send

PRESIGN = "/api/videos/presign"
GOOD = b'{"fileName": "a.mp4", "contentType": "video/mp4"}'
MALFORMED = {
    "empty": b"",
    "blank": b"  \n",
    "cut off": GOOD[:-1],
    "two documents": GOOD + GOOD,
    "single quotes": b"{'fileName': 'a.mp4'}",
    "trailing comma": b'{"fileName": "a.mp4",}',
    "form": b"fileName=a.mp4&contentType=video/mp4",
    "NaN": b'{"fileName": "a.mp4", "contentType": NaN}',
    "Infinity": b"[Infinity, -Infinity]",
    "raw control character": b'{"fileName": "a\n.mp4", "contentType": "video/mp4"}',
    "NUL byte": b"\0",
    "invalid UTF-8": GOOD.replace(b"a.mp4", b"\xff.mp4"),
    "surrogate in UTF-8": GOOD.replace(b"a.mp4", b"\xed\xa0\x80.mp4"),
    "Latin-1": GOOD.replace(b"a.mp4", "é.mp4".encode("latin-1")),
    "UTF-16": GOOD.decode().encode("utf-16"),
    "UTF-32": GOOD.decode().encode("utf-32"),
    "byte order mark": b"\xef\xbb\xbf" + GOOD,
    "nested arrays": b"[" * 60_000 + b"]" * 5_000,
    "nested objects": b'{"a":' * 13_000,
    "closed nested arrays": b"[" * 32_000 + b"]" * 32_000,
}


async def test_malformed_json_is_refused(client: Client) -> None:
    for name, body in MALFORMED.items():
        for path in (PRESIGN, "/api/videos"):
            response = await send(client, path, body)
            assert response.status_code == 400, name
            assert "errors" not in await problem(response, 400, "malformed_json")


async def test_json_that_is_no_object_is_refused_as_a_whole(client: Client) -> None:
    for body in (b"[]", b"[{}]", b"1", b"1e999", b'"text"', b"null", b"true"):
        for path in (PRESIGN, "/api/videos"):
            assert await faults(await send(client, path, body)) == {"": "Send one JSON object."}


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"],
)
async def test_json_is_taken_with_and_without_charset(client: Client, content_type: str) -> None:
    assert (await send(client, PRESIGN, GOOD, content_type)).status_code == 200


async def test_body_that_is_not_announced_as_json_is_refused(client: Client) -> None:
    others = ["text/plain", "application/problem+json", "text/json", "multipart/form-data", ""]
    others += ["application/x-www-form-urlencoded", "application/jsonx", "garbage"]
    for content_type in [None, *others]:
        for path in (PRESIGN, "/api/videos"):
            response = await send(client, path, GOOD, content_type)
            await problem(response, 415, "unsupported_media_type")


async def test_many_faults_are_all_listed(client: Client) -> None:
    body = {"categoryIds": [0] * 64}
    found = await faults(await send(client, "/api/videos", json.dumps(body).encode()))
    assert len(found) == 64 + 5
