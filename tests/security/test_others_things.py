"""Attacks on what is another's (IDOR): every address with an id, asked for by someone else."""

from uuid import uuid4

from api_client import answered, metadata, problem, put
from quart import Quart
from signed_in import (
    person_of,
    program,
    program_of,
    session_of,
    signed_in,
    token_of,
)

from portal.accounts.permissions import ANYONE
from portal.database.account_models import Account, ApiToken
from portal.database.models import Video
from portal.storage.objects import upload_id


async def test_anothers_uploaded_file_can_not_be_published(
    app: Quart, edith: Account, mallory: Account
) -> None:
    """A file that lies in storage; the call is sent with its key, and with its key and video."""
    owner, attacker = program(app, await token_of(edith)), program(app, await token_of(mallory))
    upload = await answered(
        await owner.post(
            "/api/videos/presign", json={"fileName": "a.mp4", "contentType": "video/mp4"}
        )
    )
    assert await put(upload["uploadUrl"], b"a video") == 200
    body = metadata(upload["key"])
    stolen = await attacker.post("/api/videos", json=body)
    told = await problem(stolen, 422, "validation_failed")
    assert [it["pointer"] for it in told["errors"]] == ["/key"]
    record = await answered(await owner.post("/api/videos", json=body), 201)
    # Not even what a repetition would be told.
    await problem(await attacker.post("/api/videos", json=body), 422, "validation_failed")
    assert (await Video.get(id=record["id"])).owner_id == edith.id
    own = f"/api/uploads/{upload_id(upload['key'])}"
    await problem(await attacker.get(own), 404, "upload_not_issued")
    # Word for word as to a key that was never given out.
    told = []
    for key in (upload["key"], f"videos/{uuid4().hex}.mp4"):
        begun = await attacker.post("/api/uploads", json={"key": key, "sizeBytes": 10_000_000})
        told.append(await problem(begun, 404, "upload_not_issued"))
    assert told[0] == told[1]


async def test_anothers_sessions_and_tokens_can_not_be_ended(
    app: Quart, edith: Account, mallory: Account
) -> None:
    """By the forms with their ids; one's own are ended by the same."""
    session, token = await session_of(edith), await token_of(edith)
    session_id, token_id = (await person_of(session)).session_id, (await ApiToken.get()).id
    for account, is_ended in ((mallory, False), (edith, True)):
        sender = await signed_in(app, account)
        for path in (f"sessions/{session_id}/end", f"tokens/{token_id}/revoke"):
            assert (await sender.post(f"/account/{path}")).status_code == 303
        assert (await person_of(session) == ANYONE) is is_ended
        assert (await program_of(token) == ANYONE) is is_ended
