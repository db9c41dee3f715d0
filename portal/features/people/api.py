"""JSON API of the caller: the account, role and scopes that a request acts with."""

from uuid import UUID

from pydantic import Field
from quart import Blueprint, Response
from quart_schema import document_response, tag_blueprint

from portal.accounts import tokens
from portal.accounts.permissions import usable_scopes
from portal.database.account_models import Role, Scope
from portal.events.records import Shape
from portal.http.auth import Policy, policy, principal
from portal.http.json_bodies import NO_STORE, json_response
from portal.http.schemas.base import Timestamp

blueprint = Blueprint("api_me", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Access"])


class SenderRecord(Shape):
    """Account that a request acts for, with its role and scopes."""

    account_id: UUID | None = Field(description="Null without an account.")
    email: str | None = Field(description="E-mail address of the account; null without an account.")
    role: Role | None = Field(
        description="Null without credentials. On a portal without accounts everyone is an owner."
    )
    scopes: list[Scope] = Field(
        description="Scopes that the role and the API token, if any, allow."
    )
    token_name: str | None = Field(description="Null without an API token.")
    expires_at: Timestamp | None = Field(description="End of the API token; null if it has none.")


@blueprint.get("/me")
@policy(Policy.SELF)
@document_response(SenderRecord)
async def get_me() -> Response:
    """Read the account and role of your requests, and the scopes of your API token.

    An invalid API token returns 401.
    """
    sender = await principal()
    usable = usable_scopes(sender.role)
    record = SenderRecord(
        account_id=sender.account_id,
        email=sender.email or None,
        role=sender.role,
        scopes=[scope for scope in usable if sender.scopes is None or scope in sender.scopes],
        token_name=sender.token_name or None,
        expires_at=await tokens.expiry_of(sender.token_id) if sender.token_id else None,
    )
    return json_response(record, cache_control=NO_STORE)
