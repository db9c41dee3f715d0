"""A request that is repeated with its Idempotency-Key is done once and answered as before."""

import psycopg
import pytest
from aged_videos import tidy
from api_client import (
    RAW_FILE,
    Client,
    answered,
    faults,
    metadata,
    presign,
    problem,
    put,
    rows,
    run_sql,
    until_found,
    uploaded,
)
from page_rows import change_video, make_row
from quart import Quart, Response
from signed_in import WAITING, Sender, make_account, program, token_of

from portal.database.account_models import Account
from portal.database.models import Video
from portal.http.composition import WebContext

PRESIGN = "/api/videos/presign"
FILE = {"fileName": "a.mp4", "contentType": "video/mp4"}
KEY = {"Idempotency-Key": '"8e03978e-40d5"'}
pytestmark = pytest.mark.shared_app


async def expect_repeated(first: Response, second: Response) -> None:
    """Check that an answer is the first one again, but for what tells that it is."""
    assert second.status_code == first.status_code
    assert await second.get_data() == await first.get_data()
    changed = dict(set(second.headers) - set(first.headers))
    assert {name.lower() for name in changed} == {"idempotent-replayed", "x-request-id"}


async def test_repetition_gets_the_first_answer_again(client: Client) -> None:
    body = metadata(await uploaded(client))
    first = await client.post("/api/videos", json=body, headers=KEY)
    await expect_repeated(first, await client.post("/api/videos", json=body, headers=KEY))
    address = first.headers["Location"]
    # A refusal for a fault in the body is an answer, too.
    for title, status in (("New", 200), ("", 422)):
        edit = {"title": title}
        key = {"Idempotency-Key": f"edit-{status}"}
        edited = await client.patch(address, json=edit, headers=key)
        assert edited.status_code == status
        await client.patch(address, json={"title": "Newer"})
        await expect_repeated(edited, await client.patch(address, json=edit, headers=key))
    assert (await Video.get()).title == "Newer"


async def test_key_is_for_one_request_of_one_account(app: Quart, olga: Account) -> None:
    owner = program(app, await token_of(olga))
    other = program(app, await token_of(await make_account("adam")))

    async def ask(sender: Sender, path: str = PRESIGN, name: str = "a.mp4") -> Response:
        return await sender.post(path, json={**FILE, "fileName": name}, headers=KEY)

    first = await answered(await ask(owner))
    assert await answered(await ask(owner)) == first
    assert await answered(await ask(other)) != first
    other_query = "/api/videos?visibility=private"
    for path, name in ((PRESIGN, "b.mp4"), (other_query, "a.mp4"), ("/api/uploads", "a.mp4")):
        details = await problem(await ask(owner, path, name), 422, "idempotency_key_reused")
        assert [error["pointer"] for error in details["errors"]] == ["/Idempotency-Key"]
    await problem(await ask(Sender(app)), 401, "not_signed_in")


@pytest.mark.parametrize("key", ["", "two words", "clé", "x" * 256])
async def test_invalid_key_is_named(client: Client, key: str) -> None:
    response = await client.post(PRESIGN, json=FILE, headers={"Idempotency-Key": key})
    details = await problem(response, 422, "validation_failed")
    assert [error["pointer"] for error in details["errors"]] == ["/Idempotency-Key"]


async def test_failure_of_the_portal_is_not_kept(client: Client, resources: WebContext) -> None:
    url = resources.config.database_url
    await run_sql(url, "ALTER TABLE uploads RENAME TO lost")
    failed = await client.post(PRESIGN, json=FILE, headers=KEY)
    await run_sql(url, "ALTER TABLE lost RENAME TO uploads")
    assert failed.status_code == 500
    await answered(await client.post(PRESIGN, json=FILE, headers=KEY))


async def test_temporary_refusal_is_not_kept(client: Client, resources: WebContext) -> None:
    upload = await presign(client)
    body = metadata(upload["key"])
    early = await client.post("/api/videos", json=body, headers=KEY)
    await problem(early, 409, "upload_not_found")
    # Another upload repairs this fault of the file.
    assert await put(upload["uploadUrl"], RAW_FILE, **{"Content-Encoding": "gzip"}) == 200
    assert set(await faults(await client.post("/api/videos", json=body, headers=KEY))) == {"/key"}
    assert await put(upload["uploadUrl"], RAW_FILE) == 200
    await answered(await client.post("/api/videos", json=body, headers=KEY), 201)
    # The video comes back, and its version counts again.
    video = await make_row()
    address = f"/api/videos/{video.id}"
    edit = {"title": "A"}
    headers = {"Idempotency-Key": "a", "If-Match": '"1"'}
    for change, code in (({"deleted_at": video.created_at}, 404), ({"metadata_version": 2}, 412)):
        await change_video(video.id, **change)
        assert (await client.patch(address, json=edit, headers=headers)).status_code == code
        await change_video(video.id, deleted_at=None, metadata_version=1)
    wrong_type = {**headers, "Content-Type": "text/plain"}
    refused = await client.patch(address, data=b'{"title": "A"}', headers=wrong_type)
    await problem(refused, 415, "unsupported_media_type")
    await answered(await client.patch(address, json=edit, headers=headers))
    assert len(await rows(resources.config.database_url, "SELECT FROM idempotency_keys")) == 2


async def test_answer_is_kept_after_the_client_disconnects(
    client: Client, resources: WebContext
) -> None:
    video = await make_row()
    url = resources.config.database_url
    address = f"/api/videos/{video.id}"
    headers = {**KEY, "Content-Type": "application/json"}
    body = b'{"title": "New"}'
    async with (
        client.request(address, method="PATCH", headers=headers) as connection,
        await psycopg.AsyncConnection.connect(url) as holder,
    ):
        await holder.execute("SELECT FROM publications FOR UPDATE")
        await connection.send(body)
        await connection.send_complete()
        await until_found(url, WAITING)
        again = await client.patch(address, data=body, headers=headers)
        await problem(again, 409, "request_in_progress")
        assert again.headers["Retry-After"] == "1"
        await connection.disconnect()
    again = await client.patch(address, data=body, headers=headers)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (await Video.get(id=video.id)).title == "New"


async def test_key_of_a_killed_process_is_taken_over_and_an_old_one_forgotten(
    client: Client, resources: WebContext
) -> None:
    url = resources.config.database_url
    aged = "UPDATE idempotency_keys SET began_at = now() - interval '{}'"
    answers = []
    for change in ("", f"{aged.format('61 s')}, status = NULL", aged.format("24 h 1 s")):
        if change:
            await run_sql(url, change)
        answers.append(await answered(await client.post(PRESIGN, json=FILE, headers=KEY)))
    assert len({answer["key"] for answer in answers}) == 3
    await tidy(resources)
    assert len(await rows(url, "SELECT FROM idempotency_keys")) == 1
    await run_sql(url, aged.format("24 h 1 s"))
    await tidy(resources)
    assert await rows(url, "SELECT FROM idempotency_keys") == []


async def test_calls_of_viewers_keep_no_answers(client: Client, resources: WebContext) -> None:
    report = b'v=2,cid="film",sid="a",ts=1000'
    headers = {"Content-Type": "application/cmcd", **KEY}
    for _ in range(2):
        answer = await client.post("/api/playback", data=report, headers=headers)
        assert (answer.status_code, "Idempotent-Replayed" in answer.headers) == (204, False)
    assert await rows(resources.config.database_url, "SELECT FROM idempotency_keys") == []
