"""Pages of hand-in links: those of an account, and that of a link with the calls of its script.

The calls answer as the JSON API does, but are no part of it.
"""

from uuid import UUID

from pydantic import Field
from quart import Blueprint, Response, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.accounts.tokens import digest, new_secret
from portal.database.account_models import MAX_NAME_LENGTH
from portal.errors import InvalidRequest
from portal.features.hand_in import service
from portal.features.publishing.api import PresignRequest, PresignResponse
from portal.http.addresses import public_url
from portal.http.auth import Policy, policy, principal, require_own_upload, sender_digest
from portal.http.composition import web_context
from portal.http.cookies import SENDER
from portal.http.json_bodies import json_response, read_json
from portal.http.schemas.base import ClosedShape, Text, WholeNumber
from portal.http.schemas.metadata import CategoryId, FileName, Title, UploadKey
from portal.http.schemas.validation import validated
from portal.text import whole_number
from portal.uploads import service as uploads

blueprint = Blueprint("hand_in", __name__)


class HandInForm(ClosedShape):
    """Form for a new link. The largest size of a file is None for that of the portal."""

    name: Text = Field(min_length=1, max_length=MAX_NAME_LENGTH)
    days: WholeNumber = Field(ge=1, le=365)
    max_files: WholeNumber = Field(ge=1, le=1000)
    max_megabytes: WholeNumber | None = Field(ge=1)
    category_id: CategoryId
    series_id: UUID | None


class FileRequest(ClosedShape):
    """Uploaded file that is handed in."""

    key: UploadKey
    file_name: FileName
    title: Title
    sender: Text = Field(
        min_length=1, max_length=MAX_NAME_LENGTH, description="Name of who hands it in."
    )


@blueprint.get("/hand-ins")
@policy(Policy.PUBLISH)
async def index() -> str:
    """Show the links, and the form for a new one."""
    return await _render_links()


@blueprint.post("/hand-ins")
@policy(Policy.PUBLISH)
async def make() -> ResponseReturnValue:
    """Make a link and show its address once, or show the faults of the form."""
    typed = (await request.form).to_dict()
    try:
        form = validated(
            HandInForm,
            {
                "name": typed.get("name", ""),
                "days": whole_number(typed.get("days", ""), max_digits=3),
                "maxFiles": whole_number(typed.get("maxFiles", ""), max_digits=4),
                # 100 TB is the largest limit of a portal.
                "maxMegabytes": whole_number(typed.get("maxMegabytes", ""), max_digits=9),
                "categoryId": whole_number(typed.get("categoryId", ""), max_digits=5),
                "seriesId": typed.get("seriesId") or None,
            },
            context=await web_context().categories.names(),
        )
    except InvalidRequest as exc:
        return await _render_links(typed=typed, faults=exc.by_field), exc.status
    secret = await service.make(**dict(form), by=await principal())
    return await _render_links(new_link=public_url(url_for("hand_in.page", secret=secret)))


@blueprint.post("/hand-ins/<uuid:link_id>/revoke")
@policy(Policy.PUBLISH)
async def revoke(link_id: UUID) -> ResponseReturnValue:
    """Revoke a link, and show the others."""
    await service.revoke(link_id, by=await principal())
    return redirect(url_for("hand_in.index"), 303)


@blueprint.get("/hand-in/<secret>")
@policy(Policy.ANYONE)
async def page(secret: str) -> str:
    """Show the form for a file, and the files that the browser has handed in."""
    link = await service.require_link(
        secret, max_source_bytes=web_context().config.max_source_bytes
    )
    return await render_template(
        "hand_in/page.html",
        secret=secret,
        link=link,
        files=await service.files_of(link, sender_digest()),
    )


@blueprint.post("/hand-in-files/<secret>/uploads")
@policy(Policy.ANYONE)
async def begin(secret: str) -> Response:
    """Answer a storage key and an address, as POST /api/videos/presign does.

    A cookie lets the browser continue the upload, and hand the file in.
    """
    web = web_context()
    requested = validated(PresignRequest, await read_json())
    sender = SENDER.read(request, web.config) or new_secret()
    upload = await service.begin(
        await service.require_link(secret, max_source_bytes=web.config.max_source_bytes),
        requested.file_name,
        requested.content_type,
        sender_digest=digest(sender),
        quota=web.quota,
    )
    upload_url = await web.storage.public.presign_put(
        upload.key, content_type=upload.content_type, ttl_s=web.config.upload_url_ttl_s
    )
    response = json_response(PresignResponse(upload_url=upload_url, key=upload.key))
    SENDER.set(response, sender, web.config)
    return response


@blueprint.post("/hand-in-files/<secret>")
@policy(Policy.ANYONE)
async def receive(secret: str) -> Response:
    """Receive the file that the browser has uploaded. A repeated request changes nothing."""
    web = web_context()
    requested = validated(FileRequest, await read_json())
    await service.receive(
        await service.require_link(secret, max_source_bytes=web.config.max_source_bytes),
        await require_own_upload(await uploads.find(requested.key)),
        file_name=requested.file_name,
        title=requested.title,
        sender=requested.sender,
        storage=web.storage,
        quota=web.quota,
    )
    return Response(status=204)


async def _render_links(**values: object) -> str:
    return await render_template(
        "hand_in/index.html",
        links=await service.list_links(await principal()),
        categories=await web_context().categories.names(),
        **values,
    )
