"""JSON API of groups and their members."""

from functools import partial
from typing import Annotated
from uuid import UUID

from pydantic import Field
from quart import Blueprint, Response, request, url_for
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.accounts import groups
from portal.accounts.groups import MAX_CLAIM_LENGTH, MAX_MEMBERS, GroupSummary, Members
from portal.database.account_models import MAX_EMAIL_LENGTH, MAX_NAME_LENGTH
from portal.errors import GroupNotFound
from portal.events.records import Shape
from portal.http.auth import Policy, policy
from portal.http.json_bodies import json_response, named_versions, read_json, showing_present
from portal.http.schemas.base import ClosedShape, EditHeaders, Problem, Text
from portal.http.schemas.validation import recorded_shape, validated
from portal.http.server.limits import Body

blueprint = Blueprint("api_groups", __name__, url_prefix="/api/groups")
tag_blueprint(blueprint, ["Access"])

# Room for as many e-mail addresses as a group can have.
MEMBERS = Body(max_file_bytes=2 * 1024**2)

Name = Annotated[
    Text,
    Field(min_length=1, max_length=MAX_NAME_LENGTH, description="Name, which no other group has."),
]
Claim = Annotated[
    Text,
    Field(
        max_length=MAX_CLAIM_LENGTH,
        description="Value of the single sign-on claim that the group follows; empty for a group "
        "whose members are chosen.",
    ),
]
Email = Annotated[Text, Field(max_length=MAX_EMAIL_LENGTH)]


class GroupRequest(ClosedShape):
    """Request to create a group."""

    name: Name
    claim: Claim = ""


class GroupChange(ClosedShape):
    """Change of a group; members that are left out stay."""

    name: Name | None = None
    claim: Claim | None = None


class GroupRecord(Shape):
    """Group of accounts."""

    id: UUID = Field(description="Unique identifier.")
    name: str = Field(description="Name, which no other group has.")
    claim: str = Field(
        description="Value of the single sign-on claim that the group follows, or empty."
    )
    member_count: int = Field(description="Number of members.")


class GroupList(Shape):
    """All groups, ordered by name."""

    groups: list[GroupRecord] = Field(description="The groups, at most 1,000.")


class MembersRecord(ClosedShape):
    """Members of a group."""

    emails: list[Email] = Field(
        max_length=MAX_MEMBERS, description="E-mail addresses of the members' accounts."
    )


class MembersConflict(Problem):
    """Problem details with the recorded members. The ETag header names their version."""

    present: MembersRecord = Field(description="The recorded members.")


@blueprint.get("")
@policy(Policy.PUBLISH)
@document_response(GroupList)
async def list_groups() -> Response:
    """List all groups, ordered by name."""
    records = [_record_of(group) for group in await groups.list_groups()]
    return json_response(GroupList(groups=records))


@blueprint.post("")
@policy(Policy.MANAGE, headers=("Location",))
@document_request(GroupRequest)
@document_response(GroupRecord, 201)
@document_response(Problem, 409)
async def create_group() -> Response:
    """Create a group without members.

    A group with a `claim` follows single sign-on: accounts enter and leave it as they sign in.
    """
    body = validated(GroupRequest, await read_json())
    created = await groups.create(body.name, claim=body.claim)
    response = json_response(_record_of(await groups.get(created.id)), 201)
    response.headers["Location"] = url_for("api_groups.get_group", id=created.id)
    return response


@blueprint.get("/<id>")
@policy(Policy.PUBLISH)
@document_response(GroupRecord)
async def get_group(id: str) -> Response:
    """Read a group."""
    return json_response(_record_of(await groups.get(_parse_group_id(id))))


@blueprint.patch("/<id>")
@policy(Policy.MANAGE)
@document_request(GroupChange)
@document_response(GroupRecord)
@document_response(Problem, 409)
async def change_group(id: str) -> Response:
    """Change the name or the claim of a group.

    A new claim counts for each account from its next single sign-on.
    """
    group_id = _parse_group_id(id)
    body = validated(GroupChange, await read_json())
    await groups.change(group_id, name=body.name, claim=body.claim)
    return json_response(_record_of(await groups.get(group_id)))


@blueprint.delete("/<id>")
@policy(Policy.MANAGE)
async def delete_group(id: str) -> Response:
    """Delete a group. Its members no longer see videos that are shared with them by it alone."""
    await groups.remove(_parse_group_id(id))
    return Response(status=204)


@blueprint.get("/<id>/members")
@policy(Policy.MANAGE, headers=("ETag",))
@document_response(MembersRecord)
async def get_group_members(id: str) -> Response:
    """Read the members of a group.

    Send the ETag back in If-Match when you change the members.
    """
    response = _members_response(await groups.read_members(_parse_group_id(id)))
    return await response.make_conditional(request)


@blueprint.put("/<id>/members")
@policy(Policy.MANAGE, body=MEMBERS, headers=("ETag",))
@document_headers(EditHeaders)
@document_request(MembersRecord)
@document_response(MembersRecord)
@document_response(MembersConflict, 412)
async def put_group_members(id: str) -> Response:
    """Replace the members of a group.

    If-Match must name the version that you read, or be `*`. If someone else has changed the members
    since, nothing is written. Each address must be an account's. The members of a group with a
    claim can't be chosen.
    """
    group_id = _parse_group_id(id)
    versions = named_versions(is_required=True)
    record = validated(MembersRecord, await read_json())
    async with showing_present(partial(_present_members, group_id)):
        members = await groups.replace_members(group_id, record.emails, versions=versions)
    return _members_response(members)


def _parse_group_id(text: str) -> UUID:
    """Return the id in a path. Raises `GroupNotFound` unless it is in its canonical form."""
    try:
        group_id = UUID(text)
    except ValueError:
        raise GroupNotFound from None
    if str(group_id) != text:
        raise GroupNotFound
    return group_id


def _record_of(group: GroupSummary) -> GroupRecord:
    return GroupRecord(id=group.id, name=group.name, claim=group.claim, member_count=group.members)


async def _present_members(group_id: UUID) -> tuple[MembersRecord, str]:
    """Return the recorded members of a group, and their version."""
    members = await groups.read_members(group_id)
    return recorded_shape(MembersRecord, members), members.version


def _members_response(members: Members) -> Response:
    record = recorded_shape(MembersRecord, members)
    return json_response(record, cache_control="private, no-cache", etag=members.version)
