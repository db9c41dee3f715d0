"""Tables of accounts, and of the credentials of people and programs.

Secrets are stored as SHA-256 in hexadecimal digits (`digest`), passwords by argon2id.
"""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from tortoise import fields
from tortoise.contrib.postgres.fields import ArrayField
from tortoise.models import Model

MAX_EMAIL_LENGTH = 254
MAX_NAME_LENGTH = 100
MAX_LANGUAGE_LENGTH = 10
MAX_DEVICE_LENGTH = 200
# OpenID Connect Core 1.0, section 2.
MAX_SUBJECT_LENGTH = 255
MAX_PATH_LENGTH = 2000


# `accounts.permissions` has the rules.
class Role(StrEnum):
    """Role of an account, from most to least permissions."""

    OWNER = "owner"
    ADMIN = "admin"
    EDITOR = "editor"
    CONTRIBUTOR = "contributor"
    VIEWER = "viewer"


class Scope(StrEnum):
    """Scope of an API token. A scope never exceeds the permissions of the token's account."""

    READ = "videos:read"
    WRITE = "videos:write"
    DELETE = "videos:delete"
    ADMIN = "admin"


class Account(Model):
    """Account of a person. Without a password hash, a one-time link is needed to choose a password.

    `email_unverified` says that the invited person typed the address, which was never checked.
    Viewers see the `name` beside the account's videos, unless it is empty.
    """

    id = fields.UUIDField(primary_key=True)
    email = fields.CharField(max_length=MAX_EMAIL_LENGTH, unique=True)
    name = fields.CharField(max_length=MAX_NAME_LENGTH, default="", db_default="")
    role = fields.CharEnumField(Role, max_length=20)
    # Code of the language of pages; empty for that of the browser.
    language = fields.CharField(max_length=MAX_LANGUAGE_LENGTH, default="", db_default="")
    password_hash: str | None = fields.TextField(null=True)
    is_disabled = fields.BooleanField(default=False)
    email_unverified = fields.BooleanField(default=False)
    created_at: datetime = fields.DatetimeField(auto_now_add=True)
    seen_at: datetime | None = fields.DatetimeField(null=True)

    class Meta:
        table = "accounts"


class Session(Model):
    """Browser in which someone is signed in; `digest` is of the cookie's secret."""

    id = fields.UUIDField(primary_key=True)
    digest = fields.CharField(max_length=64, unique=True)
    account: fields.ForeignKeyRelation[Account] = fields.ForeignKeyField(
        "portal.Account", related_name="sessions", on_delete=fields.CASCADE
    )
    device = fields.CharField(max_length=MAX_DEVICE_LENGTH)
    address = fields.CharField(max_length=64)
    created_at: datetime = fields.DatetimeField(auto_now_add=True)
    seen_at: datetime = fields.DatetimeField(auto_now_add=True)

    account_id: UUID

    class Meta:
        table = "sessions"


class ApiToken(Model):
    """Credential of a program. Without `expires_at` it is valid until it is revoked."""

    id = fields.UUIDField(primary_key=True)
    digest = fields.CharField(max_length=64, unique=True)
    account: fields.ForeignKeyRelation[Account] = fields.ForeignKeyField(
        "portal.Account", related_name="tokens", on_delete=fields.CASCADE
    )
    name = fields.CharField(max_length=MAX_NAME_LENGTH)
    scopes: list[str] = ArrayField("text")
    created_at: datetime = fields.DatetimeField(auto_now_add=True)
    expires_at: datetime | None = fields.DatetimeField(null=True)
    used_at: datetime | None = fields.DatetimeField(null=True)

    account_id: UUID

    class Meta:
        table = "api_tokens"


class OneTimeLink(Model):
    """Link whose holder chooses a password for an account, or for a new account with a role.

    `label` names the recipient of an invitation, as its author typed it. The link is deleted when
    it is used or revoked, and when the account that made it (`made_by_id`) is disabled, removed or
    gets another role.
    """

    id = fields.UUIDField(primary_key=True)
    digest = fields.CharField(max_length=64, unique=True)
    account: fields.ForeignKeyNullableRelation[Account] = fields.ForeignKeyField(
        "portal.Account", related_name="links", null=True, on_delete=fields.CASCADE
    )
    role: Role | None = fields.CharEnumField(  # type: ignore[assignment]  # null is untyped
        Role, max_length=20, null=True
    )
    label = fields.CharField(max_length=MAX_NAME_LENGTH, default="")
    made_by_id: UUID | None = fields.UUIDField(null=True)
    created_at: datetime = fields.DatetimeField(auto_now_add=True)
    expires_at: datetime = fields.DatetimeField()

    account_id: UUID | None

    class Meta:
        table = "one_time_links"


class Identity(Model):
    """Identity of an account at a provider of single sign-on. It belongs to one account."""

    id = fields.UUIDField(primary_key=True)
    issuer = fields.TextField()
    subject = fields.CharField(max_length=MAX_SUBJECT_LENGTH)
    account: fields.ForeignKeyRelation[Account] = fields.ForeignKeyField(
        "portal.Account", related_name="identities", on_delete=fields.CASCADE
    )
    created_at: datetime = fields.DatetimeField(auto_now_add=True)

    account_id: UUID

    class Meta:
        table = "identities"


class Group(Model):
    """Group of accounts. With a `claim` it follows single sign-on (`accounts.groups`)."""

    id = fields.UUIDField(primary_key=True)
    name = fields.TextField()
    claim = fields.TextField(default="")
    created_at: datetime = fields.DatetimeField(auto_now_add=True)

    class Meta:
        table = "groups"


class GroupMember(Model):
    """Membership of an account in a group."""

    account_id: UUID = fields.UUIDField(primary_key=True)
    group_id: UUID = fields.UUIDField()

    class Meta:
        table = "group_members"


class Guest(Model):
    """Person without an account, with whom videos are shared (`accounts.guests`).

    `session_digest` is of the secret in the browser that confirmed the link, if one has.
    """

    id = fields.UUIDField(primary_key=True)
    email = fields.CharField(max_length=MAX_EMAIL_LENGTH)
    link_digest = fields.CharField(max_length=64, unique=True)
    code_digest = fields.CharField(max_length=64)
    session_digest: str | None = fields.CharField(  # type: ignore[assignment]  # null is untyped
        max_length=64, null=True, unique=True
    )
    created_at: datetime = fields.DatetimeField(auto_now_add=True)
    bound_at: datetime | None = fields.DatetimeField(null=True)

    class Meta:
        table = "guests"


class SignOn(Model):
    """Sign-in in progress at a provider; `digest` is of the secret in the browser's cookie."""

    id = fields.UUIDField(primary_key=True)
    digest = fields.CharField(max_length=64, unique=True)
    next_path = fields.CharField(max_length=MAX_PATH_LENGTH)
    expires_at: datetime = fields.DatetimeField()

    class Meta:
        table = "sign_ons"
