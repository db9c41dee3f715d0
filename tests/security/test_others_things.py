"""Attacks on what is another's (IDOR): every address with an id, asked for by someone else."""

from typing import Any
from uuid import uuid4

import pytest
from api_client import answered, metadata, problem, put
from quart import Quart
from signed_in import (
    make_upload,
    make_video,
    person,
    person_of,
    program,
    session_of,
    signed_in,
    token_of,
)

from portal.accounts import invitations, sessions
from portal.accounts.permissions import ANYONE
from portal.database.account_models import Account, ApiToken, OneTimeLink, Session
from portal.database.models import Upload, Video
from portal.database.states import Role
from portal.storage.objects import upload_id


class Victim:
    """Everything that an account can have."""

    def __init__(self, account: Account) -> None:
        self.account = account

    async def make(self) -> None:
        self.video = await make_video(self.account)
        self.upload = await make_upload(self.account)
        self.session, self.token = await session_of(self.account), await token_of(self.account)
        self.session_id = (await person_of(self.session)).session_id
        [kept] = await ApiToken.filter(account_id=self.account.id)
        self.token_id = kept.id

    async def dump(self) -> list[Any]:
        """All rows, but for when something was last used."""
        used = {"seen_at", "used_at", "active_at"}
        rows = []
        for model in (Account, Session, ApiToken, OneTimeLink, Video, Upload):
            for row in await model.all().values():
                rows.append({name: value for name, value in row.items() if name not in used})
        return sorted(rows, key=str)


@pytest.fixture
async def victim(edith: Account, olga: Account) -> Victim:
    victim = Victim(edith)
    await victim.make()
    await invitations.invite(Role.EDITOR, by=person(olga))
    await invitations.offer_password(edith.id, by=person(olga))
    return victim


async def test_anothers_upload_looks_like_none(
    app: Quart, victim: Victim, mallory: Account
) -> None:
    """Five calls: the answer is word for word that to an id that was never given out."""
    sender = program(app, await token_of(mallory))
    calls = [("GET", ""), ("POST", "/parts/1"), ("POST", "/complete"), ("DELETE", "")]
    for method, rest in calls:
        told = [
            await problem(
                await sender.ask(method, f"/api/uploads/{upload}{rest}"), 404, "upload_not_issued"
            )
            for upload in (victim.upload, uuid4().hex)
        ]
        assert told[0] == told[1]
    key = f"videos/{victim.upload}.mp4"
    other = f"videos/{uuid4().hex}.mp4"
    bodies = [{"key": it, "sizeBytes": 10_000_000} for it in (key, other)]
    told = [
        await problem(await sender.post("/api/uploads", json=body), 404, "upload_not_issued")
        for body in bodies
    ]
    assert told[0] == told[1]


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
    for path in (f"/api/uploads/{upload_id(upload['key'])}",):
        await problem(await attacker.get(path), 404, "upload_not_issued")


async def test_anothers_sessions_tokens_and_links_can_not_be_ended(
    app: Quart, victim: Victim, mallory: Account
) -> None:
    """Four forms of another editor with the ids of a session, a token and links; all go on."""
    invitation = (await invitations.list_invitations())[0].id
    before = await victim.dump()
    sender = await signed_in(app, mallory)
    own = len(await sessions.list_sessions(person(mallory)))
    for path, status in (
        (f"/account/sessions/{victim.session_id}/end", 303),
        (f"/account/tokens/{victim.token_id}/revoke", 303),
        (f"/people/invitations/{invitation}/revoke", 403),
        (f"/people/invitations/{uuid4()}/revoke", 403),
    ):
        assert (await sender.post(path)).status_code == status
    mine = {"account_id": mallory.id}
    after = [row for row in await victim.dump() if row.get("account_id") != mine["account_id"]]
    assert after == before
    assert own == 1
    assert await person_of(victim.session) != ANYONE
