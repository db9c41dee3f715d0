"""The pages of groups: made, filled, renamed and deleted by admins, without scripts."""

import pytest
from page_texts import fault_of, page, send, value_of, words_of
from quart import Quart
from signed_in import Sender, configure, make_account

from portal.accounts import groups
from portal.database.account_models import Role

REMOVE = 'aria-label="Remove '
pytestmark = pytest.mark.shared_app


async def follow_form(sender: Sender, path: str, **form: str) -> str:
    """Send a form; return the page to which it leads."""
    response = await sender.post(path, form=form)
    assert response.status_code == 303
    return await page(sender, response.headers["Location"])


async def test_group_is_made_filled_renamed_and_deleted(owner: Sender) -> None:
    for name in ("zoe", "ben"):
        await make_account(name, Role.VIEWER)
    assert 'href="/groups"' in await page(owner, "/people")
    text = await follow_form(owner, "/groups", name="Film staff")
    [group] = await groups.list_groups()
    path = f"/groups/{group.id}"
    assert "Group created." in text
    assert "No members yet." in text
    assert text.count("<option value=") >= 3
    typed = "Zoe@example.org,\n olga@example.org;ben@example.org"
    text = await follow_form(owner, f"{path}/members", emails=typed)
    assert text.count(REMOVE) == 3
    text = await follow_form(owner, f"{path}/members/remove", email="zoe@example.org")
    assert "Member removed." in text
    assert 'value="zoe@example.org"' in text.partition("<datalist")[2]
    assert (await groups.read_members(group.id)).emails == ["ben@example.org", "olga@example.org"]
    await follow_form(owner, path, name="Film crew")
    assert "Film crew 2 members" in words_of(await page(owner, "/groups"))
    text = await follow_form(owner, f"{path}/delete")
    assert "Group deleted." in text
    assert "Film crew" not in text
    await page(owner, path, 404)


async def test_faults_are_shown_at_their_fields_with_what_was_typed(owner: Sender) -> None:
    staff = await groups.create("Staff")
    await groups.create("Team")
    for path in ("/groups", f"/groups/{staff.id}"):
        text = await send(owner, path, {"name": "TEAM"})
        assert "already exists" in fault_of(text, "name")
        assert value_of(text, "name") == "TEAM"
    members = f"/groups/{staff.id}/members"
    for typed, fault in (
        ("olga@example.org, x@example.org", "x@example.org"),
        (" , ", "Enter an email"),
    ):
        text = await send(owner, members, {"emails": typed})
        assert fault in fault_of(text, "emails")
        assert value_of(text, "emails") == typed
    assert (await groups.read_members(staff.id)).emails == []


async def test_group_that_follows_single_sign_on_says_so_and_has_no_controls_of_members(
    app: Quart, owner: Sender
) -> None:
    """Without a provider a claim can't be chosen, but be emptied; the form of a name keeps it."""
    group = await groups.create("Staff")
    path = f"/groups/{group.id}"
    await groups.add_members(group.id, ["olga@example.org"])
    for address in ("/groups", path):
        assert 'name="claim"' not in await page(owner, address)
    configure(app, oidc_issuer="https://id.example.org")
    assert 'name="claim"' in await page(owner, "/groups")
    text = await follow_form(owner, path, name="Staff", claim="film <staff>")
    configure(app, oidc_issuer="")
    for address in ("/groups", path):
        words = words_of(await page(owner, address))
        assert "Follows single sign-on: film <staff>" in words
    assert REMOVE not in text
    assert 'name="emails"' not in text
    text = await send(owner, f"{path}/members/remove", {"email": "olga@example.org"})
    assert "follows single sign-on" in text
    await follow_form(owner, path, name="Crew")
    assert (await groups.get(group.id)).claim == "film <staff>"
    text = await follow_form(owner, path, name="Crew", claim="")
    assert 'name="emails"' in text
