"""Attacks on what is another's (IDOR): every address with an id, asked for by someone else."""

from typing import Any
from uuid import uuid4

import pytest
from api_client import answered, metadata, problem, put
from guarded_routes import Route, routes
from quart import Quart
from signed_in import (
    Sender,
    make_upload,
    make_video,
    person,
    person_of,
    program,
    session_of,
    signed_in,
    text_of,
    token_of,
)

from portal.accounts import links, sessions
from portal.accounts.permissions import ANYONE
from portal.database.account_models import Account, ApiToken, OneTimeLink, Session
from portal.database.models import Upload, Video
from portal.database.states import Role
from portal.storage.keys import upload_id
from portal.web.access import Policy

# That change a video or an upload, or tell what only its owner may know.
TO_OWNERS = (Policy.EDIT, Policy.DELETE, Policy.OWN_UPLOAD)


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
    await links.invite(Role.EDITOR, by=person(olga))
    await links.offer_password(edith.id, by=person(olga))
    return victim


def addresses(app: Quart, *, video_id: str, upload: str) -> list[tuple[str, str, Route]]:
    """Every method and address that is an owner's alone, with these ids."""
    return [
        (it.method, it.path(upload if it.is_about_upload else video_id), it)
        for it in routes(app)
        if it.policy in TO_OWNERS
    ]


async def attackers(app: Quart, mallory: Account) -> list[Sender]:
    return [await signed_in(app, mallory), program(app, await token_of(mallory))]


async def test_every_address_of_anothers_video_and_upload_is_closed(
    app: Quart, victim: Victim, mallory: Account
) -> None:
    """Some twenty methods and addresses, by session and by token of another editor."""
    senders, before = await attackers(app, mallory), await victim.dump()
    found = addresses(app, video_id=str(victim.video.id), upload=victim.upload)
    assert len(found) > 18
    for sender in senders:
        for method, path, route in found:
            answer = await sender.ask(method, path, **({"json": {}} if "api" in path else {}))
            expected = 404 if route.is_about_upload else 403
            assert answer.status_code == expected, (method, path)
    assert await victim.dump() == before


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


@pytest.mark.parametrize("spelling", ["upper", "hex", "urn", "braces", "spaces", "dots", "null"])
async def test_other_spellings_of_an_id_open_nothing(
    app: Quart, victim: Victim, mallory: Account, spelling: str
) -> None:
    """Seven spellings of a video's id and of an upload's, at every address of theirs."""
    sender, before = await signed_in(app, mallory), await victim.dump()

    def spelt(text: str) -> str:
        return {
            "upper": text.upper(),
            "hex": text.replace("-", ""),
            "urn": f"urn:uuid:{text}",
            "braces": f"%7B{text}%7D",
            "spaces": f"%20{text}%20",
            "dots": f"..%2F{text}",
            "null": f"{text}%00",
        }[spelling]

    found = addresses(app, video_id=spelt(str(victim.video.id)), upload=spelt(victim.upload))
    for method, path, _ in found:
        answer = await sender.ask(method, path, **({"json": {}} if "api" in path else {}))
        # As of a video or an upload that is not there.
        assert answer.status_code in (400, 403, 404, 405, 409, 410, 415, 428), (method, path)
    assert await victim.dump() == before


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
    invitation = (await links.list_invitations())[0].id
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


async def test_others_do_not_show_on_ones_own_page(
    app: Quart, victim: Victim, mallory: Account
) -> None:
    """The page of an account, and of people as an admin sees it, searched for all secrets."""
    page = await text_of(await (await signed_in(app, mallory)).get("/account"))
    hidden = [victim.session_id, victim.token_id, victim.session, victim.token]
    for secret in (*hidden, victim.account.email):
        assert str(secret) not in page
    assert mallory.email in page
    with_everyone = await text_of(
        await (await signed_in(app, await Account.get(role=Role.OWNER))).get("/people")
    )
    assert victim.account.email in with_everyone
    for secret in hidden:
        assert str(secret) not in with_everyone


async def test_people_are_changed_by_who_may_alone(
    app: Quart, victim: Victim, mallory: Account
) -> None:
    """Every address of the page of people, with the victim's id, a link's, and one that is none."""
    sender = await signed_in(app, mallory)
    before, tried = await victim.dump(), 0
    for route in [it for it in routes(app) if it.rule.startswith("/people")]:
        for some_id in map(str, (victim.account.id, victim.session_id, uuid4())):
            path = route.path(account_id=some_id, link_id=some_id)
            options = {"form": {"role": "viewer"}} if route.method == "POST" else {}
            # Whether there is such an account is not told.
            assert (await sender.ask(route.method, path, **options)).status_code == 403, path
            tried += 1
    assert tried >= 27
    assert await victim.dump() == before
