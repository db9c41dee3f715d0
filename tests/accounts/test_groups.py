"""Groups: their names and members, changes at the same time, and groups that follow a claim."""

import asyncio
from uuid import uuid4

import pytest
from audit_lines import lines
from signed_in import make_account, person

from portal.accounts import groups, people
from portal.accounts.groups import MAX_CLAIM_LENGTH
from portal.database.account_models import MAX_NAME_LENGTH, Account, Role
from portal.database.connection import transaction
from portal.errors import GroupExists, GroupNotFound, InvalidRequest, MembersChanged

ANN = "ann@example.org"
# With a hyphen, which many collations of databases ignore.
BEA = "b-ea@example.org"
BEN = "ben@example.org"


@pytest.fixture
async def bea(ann: Account) -> Account:
    return await make_account("b-ea", Role.EDITOR)


@pytest.fixture
async def ben(ann: Account) -> Account:
    return await make_account("ben", Role.VIEWER)


async def test_names_differ_by_more_than_case_and_surplus_spaces(ann: Account) -> None:
    staff = await groups.create("  Film \n staff ")
    team = await groups.create("team", claim=" films ")
    assert [(group.name, group.claim, group.members) for group in await groups.list_groups()] == [
        ("Film staff", "", 0),
        ("team", "films", 0),
    ]
    with pytest.raises(GroupExists):
        await groups.create("film STAFF")
    with pytest.raises(GroupExists):
        await groups.change(team.id, name="FILM staff")
    await groups.change(staff.id, name="Film Staff")
    await groups.change(staff.id, claim="staff")
    changed = await groups.get(staff.id)
    assert (changed.name, changed.claim) == ("Film Staff", "staff")


async def test_one_of_two_creations_at_the_same_time_gets_the_name(ann: Account) -> None:
    results = await asyncio.gather(
        *(groups.create("Staff") for _ in range(2)), return_exceptions=True
    )
    assert [type(result) for result in results].count(GroupExists) == 1
    assert len(await groups.list_groups()) == 1


async def test_faults_of_name_and_claim_are_reported_together(ann: Account) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await groups.create("x" * (MAX_NAME_LENGTH + 1), claim="x" * (MAX_CLAIM_LENGTH + 1))
    assert set(refused.value.by_field) == {"name", "claim"}


async def test_members_are_replaced_if_they_are_those_that_were_read(
    bea: Account, ben: Account
) -> None:
    """A repeated change is none, and has no line in the audit log."""
    group = await groups.create("Staff")
    empty = await groups.read_members(group.id)
    replaced = await groups.replace_members(
        group.id, [f" {BEN.upper()}", BEA, ANN], versions={empty.version}
    )
    present = await groups.read_members(group.id)
    assert present.emails == [ANN, BEA, BEN]
    assert present.version == replaced.version != empty.version
    count = len(await lines())
    await groups.replace_members(group.id, [BEN, ANN, BEA], versions={empty.version})
    assert len(await lines()) == count
    with pytest.raises(MembersChanged):
        await groups.replace_members(group.id, [ANN], versions={empty.version})
    with pytest.raises(InvalidRequest) as refused:
        await groups.add_members(group.id, ["nobody@example.org"])
    assert "nobody@example.org" in refused.value.by_field["emails"]
    await groups.remove_member(group.id, BEA)
    assert (await groups.read_members(group.id)).emails == [ANN, BEN]
    assert await groups.list_candidates(group.id) == [BEA]
    line = (await lines())[-1]
    assert (line["action"], line["detail"]) == (
        "group.members_changed",
        {"added": "", "removed": BEA},
    )


async def test_members_added_and_removed_at_the_same_time_are_all_recorded(
    bea: Account, ben: Account
) -> None:
    group = await groups.create("Staff")
    await groups.add_members(group.id, [ANN])
    await asyncio.gather(
        groups.add_members(group.id, [BEA]),
        groups.add_members(group.id, [BEN]),
        groups.remove_member(group.id, ANN),
    )
    assert (await groups.read_members(group.id)).emails == [BEA, BEN]


async def test_groups_with_a_claim_follow_it_and_others_do_not(bea: Account, ben: Account) -> None:
    chosen = await groups.create("Chosen")
    films = await groups.create("Films", claim="films")
    sound = await groups.create("Sound", claim="sound")
    await groups.add_members(chosen.id, [BEA])

    async def follow(*values: str) -> frozenset[object]:
        async with transaction():
            await groups.follow(bea.id, values)
        return (await groups.group_ids_of([bea.id]))[bea.id]

    assert await follow("films", "chosen", "") == {chosen.id, films.id}
    assert await follow("films", "sound") == {chosen.id, films.id, sound.id}
    with pytest.raises(InvalidRequest) as refused:
        await groups.remove_member(sound.id, BEA)
    assert "single sign-on" in refused.value.by_field["emails"]
    assert await follow() == {chosen.id}
    assert await groups.any_follows()


async def test_removed_accounts_leave_their_groups_and_removed_groups_are_gone(
    ann: Account, bea: Account
) -> None:
    group = await groups.create("Staff")
    await groups.add_members(group.id, [ANN, BEA])
    await people.remove(bea.id, by=person(ann))
    assert [listed.members for listed in await groups.list_groups()] == [1]
    await groups.remove(group.id)
    assert await groups.group_ids_of([ann.id]) == {ann.id: frozenset()}
    for missing in (group.id, uuid4()):
        with pytest.raises(GroupNotFound):
            await groups.add_members(missing, [ANN])
