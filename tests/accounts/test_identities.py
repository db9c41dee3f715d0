"""Links between people of a provider and accounts: claims, addresses and roles."""

import asyncio
from typing import Any

import pytest
from signed_in import ADDRESS, PASSWORD, make_account, person, person_of

from portal.accounts import identities, invitations, people
from portal.accounts.identities import read_claims, value_of
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import Principal
from portal.config import Config
from portal.database.account_models import MAX_NAME_LENGTH, Account, Identity, Role, Session
from portal.errors import SingleSignOnRefused

CLAIMS = {"iss": "https://id.example", "sub": "ann", "email_verified": True}
NEWCOMERS = {"OIDC_DEFAULT_ROLE": "viewer"}
MAP = {"OIDC_ROLES": "admins:admin, staff:editor, all:viewer"}


def settings(**environ: str) -> Config:
    return Config.from_env({"DATABASE_URL": "postgresql://portal@db/portal", **environ})


def email_of(**claims: Any) -> str:
    return read_claims({**CLAIMS, **claims}, settings()).email


async def sign_in(
    subject: str, claims: dict[str, Any], signed_in_id: Any = None, **environ: str
) -> Principal:
    """Sign in with claims of the provider; return the principal of the session."""
    claimed = read_claims({**CLAIMS, "sub": subject, **claims}, settings(**environ))
    options = {"device": "a test", "address": ADDRESS, "signed_in_id": signed_in_id}
    return await person_of(await identities.sign_in(claimed, **options))


async def refused(subject: str, claims: dict[str, Any], *args: Any, **environ: str) -> str:
    """Check that a sign-in is refused; return the reason."""
    before = await Session.all().count()
    with pytest.raises(SingleSignOnRefused) as refusal:
        await sign_in(subject, claims, *args, **environ)
    assert await Session.all().count() == before
    return refusal.value.detail


def test_only_verified_addresses_are_used() -> None:
    assert email_of(email="Ännchen@Example.ORG") == "ännchen@example.org"
    for verified in (False, None, "true", 1):
        assert email_of(email="ann@example.org", email_verified=verified) == ""


@pytest.mark.parametrize(
    "email",
    [
        "",
        "ann@",
        "a b@example.org",
        "a" * 300 + "@example.org",
        None,
        ["ann@example.org"],
        # Omitting or replacing characters would turn these into other people's addresses.
        "ann\0@example.org",
        "ann@example.org ",
        "ann@example.org\nx@y",
        "mi\u212ae@example.org",
        "ann@example.org@evil.example",
    ],
    ids=repr,
)
def test_addresses_that_normalization_would_change_are_ignored(email: object) -> None:
    assert email_of(email=email) == ""


@pytest.mark.parametrize("subject", ["", "a\0", "a" * 256])
def test_subject_that_cannot_be_stored_is_refused(subject: str) -> None:
    with pytest.raises(SingleSignOnRefused):
        read_claims({**CLAIMS, "sub": subject}, settings())


def test_claims_are_found_by_name_or_path() -> None:
    claims = {"a": {"b": {"c": 1}}, "a.b": 2, "d": "text"}
    values = [value_of(claims, name) for name in ("a.b", "a", "a.b.c", "d.e", "x", "x.y")]
    assert values == [2, {"b": {"c": 1}}, 1, None, None, None]


def test_groups_are_mapped_to_roles() -> None:
    config = settings(OIDC_ROLES="urn:x:bosses:owner, staff:editor", OIDC_DEFAULT_ROLE="viewer")
    for groups, role in (
        (["urn:x:bosses", "staff"], Role.OWNER),
        (["staff"], Role.EDITOR),
        (["owner", "urn:x"], Role.VIEWER),
    ):
        assert read_claims({**CLAIMS, "groups": groups}, config).role is role


def test_only_listed_domains_are_accepted() -> None:
    config = settings(OIDC_DOMAINS="films.example")
    assert read_claims({**CLAIMS, "email": "a@Films.example"}, config).email
    domains = ("evil.example", "evil.films.example", "films.example.evil.example")
    for domain in domains:
        with pytest.raises(SingleSignOnRefused, match="Single sign-on is not allowed for"):
            read_claims({**CLAIMS, "email": f"b@{domain}"}, config)
    for claims in ({"email": "a@films.example@evil.example"}, {}):
        with pytest.raises(SingleSignOnRefused, match="has not verified your email address"):
            read_claims({**CLAIMS, **claims}, config)


@pytest.mark.usefixtures("database")
async def test_single_sign_on_never_adds_the_first_account() -> None:
    """A group that is mapped to the role owner makes no difference."""
    await refused("1", {"email": "ed@example.org", "groups": ["all"]}, OIDC_ROLES="all:owner")
    assert not await Account.exists()


async def test_name_of_the_provider_is_used_if_the_account_has_none(ann: Account) -> None:
    edith = await make_account("edith", Role.EDITOR)
    ed = await make_account("ed", Role.EDITOR)
    await people.rename(ed.id, "Ed")
    await sign_in("1", {"email": edith.email, "name": "Edith\0 Hill"})
    await sign_in("1", {"email": edith.email, "name": "Someone"})
    await sign_in("2", {"email": ed.email, "name": ["Eduard"]})
    await sign_in("3", {"email": "nina@example.org", "name": "N" * 200}, **NEWCOMERS)
    names = await Account.all().order_by("email").values_list("name", flat=True)
    assert list(names) == ["", "Ed", "Edith Hill", "N" * MAX_NAME_LENGTH]


async def test_linked_person_is_recognized_by_the_subject(ann: Account) -> None:
    """The address at the provider may change, be unverified, or be missing."""
    edith = await make_account("edith", Role.EDITOR)
    for claims in (
        {"email": edith.email},
        {"email": "married@example.org"},
        {"email": ann.email},
        {"email": ann.email, "email_verified": False},
        {},
    ):
        assert (await sign_in("1", claims)).account_id == edith.id, claims
    assert await Account.all().count() == 2


async def test_person_without_account_is_refused_without_a_default_role(ann: Account) -> None:
    claims = {"email": "new@example.org"}
    assert "new@example.org has no account" in await refused("1", claims)
    unverified = {"email": ann.email, "email_verified": False}
    reason = await refused("1", unverified, **NEWCOMERS)
    assert "has not verified your email address" in reason
    assert (await Account.all().count(), await Identity.all().count()) == (1, 0)
    newcomer = await sign_in("1", claims, **NEWCOMERS)
    assert (newcomer.email, newcomer.role) == ("new@example.org", Role.VIEWER)
    assert (await Account.get(email="new@example.org")).password_hash is None


async def test_disabled_account_is_refused(ann: Account) -> None:
    """Both before and after it was linked."""
    edith = await make_account("edith", Role.EDITOR)
    claims = {"email": edith.email}
    await people.disable(edith.id, by=person(ann))
    assert "Your account is disabled" in await refused("1", claims)
    assert await Identity.all().count() == 0
    await people.enable(edith.id, by=person(ann))
    assert (await sign_in("1", claims)).account_id == edith.id
    await people.disable(edith.id, by=person(ann))
    assert "Your account is disabled" in await refused("1", claims)


async def test_account_with_an_unverified_address_is_linked_only_in_its_own_session(
    ann: Account, passwords: Passwords
) -> None:
    """An invited person could otherwise use someone's address to share that person's role."""
    link = await invitations.invite(Role.VIEWER, by=person(ann))
    mallory = await invitations.accept(
        link, email="boss@example.org", password=PASSWORD, passwords=passwords
    )
    claims = {"email": mallory.email, "groups": ["admins"]}
    for signed_in_id in (None, ann.id):
        reason = await refused("1", claims, signed_in_id, **MAP)
        assert "its address was never verified" in reason
    for signed_in_id in (mallory.id, None):
        linked = await sign_in("1", claims, signed_in_id, **MAP)
        assert (linked.account_id, linked.role) == (mallory.id, Role.ADMIN)


async def test_another_person_with_the_same_address_gets_the_account_only_after_unlinking(
    ann: Account,
) -> None:
    claims = {"email": ann.email}
    await sign_in("first", claims)
    assert "is linked to another person" in await refused("second", claims)
    await identities.unbind(ann.id)
    await sign_in("second", claims)
    assert "is linked to another person" in await refused("first", claims)


async def test_mapped_role_is_applied_at_every_sign_in(ann: Account) -> None:
    """Without a mapped role and a default role the account keeps its role."""
    edith = await make_account("edith", Role.EDITOR)
    for groups, environ, role in (
        (["admins"], {}, Role.EDITOR),
        (["admins"], NEWCOMERS, Role.EDITOR),
        (["admins"], MAP, Role.ADMIN),
        (["all"], MAP, Role.VIEWER),
        (["staff"], MAP, Role.EDITOR),
        ([], MAP, Role.EDITOR),
        ([], {**MAP, **NEWCOMERS}, Role.VIEWER),
    ):
        principal = await sign_in("1", {"email": edith.email, "groups": groups}, **environ)
        assert principal.role is role, (groups, environ)


async def test_owners_keep_their_role_and_new_owners_need_a_mapping(ann: Account) -> None:
    for groups in (["all"], ["admins"], []):
        owner = await sign_in("1", {"email": ann.email, "groups": groups}, **MAP, **NEWCOMERS)
        assert owner.role is Role.OWNER, groups
    claims = {"email": "ed@example.org", "groups": ["staff", "bosses"]}
    newcomer = await sign_in("2", claims, OIDC_ROLES="bosses:owner, staff:editor")
    assert newcomer.role is Role.OWNER


async def test_concurrent_sign_ins_of_a_newcomer_add_one_account(ann: Account) -> None:
    claims = {"email": "twice@example.org"}
    principals = await asyncio.gather(*(sign_in("1", claims, **NEWCOMERS) for _ in range(6)))
    assert len({principal.account_id for principal in principals}) == 1
    assert await Account.all().count() == 2
    assert await Identity.all().count() == 1
