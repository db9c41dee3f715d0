"""Whose address an address is, and which role a claim gives."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.accounts.identities import read_claims as read
from portal.accounts.identities import value_of
from portal.config import Config
from portal.database.states import Role
from portal.errors import SingleSignOnRefused

WHO = {"iss": "https://id.example", "sub": "ann", "email_verified": True}


def settings(**environ: str) -> Config:
    return Config.from_env({"DATABASE_URL": "postgresql://portal@db/portal", **environ})


def email_of(**claims: Any) -> str:
    return read({**WHO, **claims}, settings()).email


@pytest.mark.parametrize("email", ["ann@example.org", "Ann@Example.ORG", "ännchen@example.org"])
def test_verified_address_is_taken(email: str) -> None:
    assert email_of(email=email) == email.lower()


@pytest.mark.parametrize(
    "email",
    [
        "",
        "ann",
        "@",
        "ann@",
        "a b@example.org",
        # Other addresses that would become Ann's by what is left out or replaced.
        "ann\0@example.org",
        "ann@example.org ",
        "\tann@example.org",
        "mi\u212ae@example.org",
        "ann@e\u212aample.org",
        "a" * 300 + "@example.org",
        "ann@example.org\nx@y",
        "ann@example.org@evil.example",
        None,
        5,
        ["ann@example.org"],
        {"ann@example.org": 1},
    ],
    ids=repr,
)
def test_what_is_not_the_very_address_is_none(email: object) -> None:
    assert email_of(email=email) == ""


@given(st.text())
def test_no_address_is_taken_that_is_another_here(email: str) -> None:
    found = email_of(email=email)
    assert not found or (found == email.lower() and found.isascii() == email.isascii())


@pytest.mark.parametrize("subject", ["", "\0", "a\0", "a" * 256])
def test_subject_that_cannot_be_kept_is_refused(subject: str) -> None:
    with pytest.raises(SingleSignOnRefused):
        read({**WHO, "sub": subject}, settings())


def test_claims_are_found_by_name_or_path() -> None:
    claims = {"a": {"b": {"c": 1}}, "a.b": 2, "d": "text"}
    assert [value_of(claims, name) for name in ("a.b", "a", "a.b.c", "d.e", "x", "x.y")] == [
        2,
        {"b": {"c": 1}},
        1,
        None,
        None,
        None,
    ]


def test_roles_are_those_of_the_map() -> None:
    config = settings(OIDC_ROLES="urn:x:bosses:owner, staff:editor", OIDC_DEFAULT_ROLE="viewer")
    for groups, role in (
        (["urn:x:bosses", "staff"], Role.OWNER),
        (["staff"], Role.EDITOR),
        (["owner", "urn:x"], Role.VIEWER),
    ):
        assert read({**WHO, "groups": groups}, config).role is role
