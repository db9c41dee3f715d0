"""Groups over the API: created, changed and deleted, and their members with versions."""

from typing import Any

import pytest
from api_client import answered, faults, problem
from quart import Quart, Response
from signed_in import Sender, make_account, program, token_of

from portal.database.account_models import Account, Role, Scope

GROUPS = "/api/groups"
OLGA = "olga@example.org"
ZOE = "zoe@example.org"
pytestmark = pytest.mark.shared_app


@pytest.fixture
async def admin(app: Quart, olga: Account) -> Sender:
    """A program of the owner."""
    return program(app, await token_of(olga, [Scope.ADMIN, Scope.WRITE]))


async def make_group(sender: Sender, **members: Any) -> str:
    """Create a group, and return its address."""
    response = await sender.post(GROUPS, json={"name": "Staff", **members})
    record = await answered(response, 201)
    assert response.headers["Location"] == f"{GROUPS}/{record['id']}"
    return str(response.headers["Location"])


async def replace_members(sender: Sender, address: str, *emails: str, etag: str) -> Response:
    return await sender.ask(
        "PUT", f"{address}/members", json={"emails": emails}, headers={"If-Match": etag}
    )


async def test_group_is_created_listed_changed_and_deleted(app: Quart, admin: Sender) -> None:
    """Editors read groups, to share videos with them."""
    address = await make_group(admin, claim="staff")
    await make_group(admin, name="actors")
    edith = await make_account("edith", Role.EDITOR)
    editor = program(app, await token_of(edith, [Scope.WRITE]))
    listed = (await answered(await editor.get(GROUPS)))["groups"]
    record = {"name": "Staff", "claim": "staff", "memberCount": 0}
    assert [group["name"] for group in listed] == ["actors", "Staff"]
    assert listed[1] == {"id": listed[1]["id"], **record}
    changed = await answered(await admin.ask("PATCH", address, json={"claim": ""}))
    assert changed == {**listed[1], "claim": ""}
    assert await answered(await editor.get(address)) == changed
    for response in (
        await admin.ask("PATCH", address, json={"name": "ACTORS"}),
        await admin.post(GROUPS, json={"name": "Actors"}),
    ):
        await problem(response, 409, "group_exists")
    assert set(await faults(await admin.post(GROUPS, json={"name": " "}))) == {"/name"}
    assert (await admin.ask("DELETE", address)).status_code == 204
    await problem(await admin.ask("DELETE", address), 404, "group_not_found")


async def test_members_are_replaced_if_no_one_else_has_changed_them(admin: Sender) -> None:
    await make_account("zoe", Role.VIEWER)
    address = await make_group(admin)
    members = f"{address}/members"
    read = await admin.get(members)
    assert await answered(read) == {"emails": []}
    etag = read.headers["ETag"]
    unnamed = await admin.ask("PUT", members, json={"emails": []})
    await problem(unnamed, 428, "precondition_required")
    saved = await replace_members(admin, address, "Zoe@example.org", OLGA, etag=etag)
    assert await answered(saved) == {"emails": [OLGA, ZOE]}
    assert saved.headers["ETag"] != etag
    conflict = await replace_members(admin, address, ZOE, etag=etag)
    body = await problem(conflict, 412, "members_changed")
    assert body["present"] == {"emails": [OLGA, ZOE]}
    assert conflict.headers["ETag"] == saved.headers["ETag"]
    unchanged = {"If-None-Match": saved.headers["ETag"]}
    assert (await admin.get(members, headers=unchanged)).status_code == 304
    assert (await answered(await admin.get(address)))["memberCount"] == 2


async def test_fault_of_members_names_the_first_unknown_address(admin: Sender) -> None:
    address = await make_group(admin)
    unknown = await replace_members(admin, address, OLGA, "y@e.org", "x@e.org", etag="*")
    assert "x@e.org" in (await faults(unknown))["/emails"]
    await answered(await admin.ask("PATCH", address, json={"claim": "staff"}))
    following = await replace_members(admin, address, OLGA, etag="*")
    assert "single sign-on" in (await faults(following))["/emails"]


@pytest.mark.parametrize("group_id", ["none", "{id}", "5c5143f0-760a-4657-a328-0723613d59c8"])
async def test_unknown_and_malformed_ids_are_not_found(admin: Sender, group_id: str) -> None:
    issued_id = (await make_group(admin)).removeprefix(f"{GROUPS}/")
    address = f"{GROUPS}/{group_id.replace('{id}', issued_id.upper())}"
    for path in (address, f"{address}/members"):
        await problem(await admin.get(path), 404, "group_not_found")


async def test_group_can_have_more_members_than_other_requests_have_room_for(
    admin: Sender,
) -> None:
    address = await make_group(admin)
    emails = [f"{'x' * 200}{number}@example.org" for number in range(5000)]
    response = await replace_members(admin, address, *emails, etag="*")
    assert "No account has the address" in (await faults(response))["/emails"]
