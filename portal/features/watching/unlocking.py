"""Password of a video, which a browser enters once."""

from collections.abc import Mapping
from uuid import UUID

from quart import Blueprint, redirect, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from portal.accounts import tries
from portal.accounts.permissions import audience_of
from portal.errors import TooManyTries, VideoLocked
from portal.features.watching.embedding import framed_by
from portal.http.addresses import own_path, unlocked_base
from portal.http.auth import Policy, policy, unlocked_ids
from portal.http.composition import web_context
from portal.http.cookies import UNLOCKED
from portal.http.errors import locked_page
from portal.http.server.context import allow_framing, state_of
from portal.http.server.limits import Rate
from portal.locale.messages import Message
from portal.videos.reading import parse_video_id

blueprint = Blueprint("unlocking", __name__)

FREE_TRIES = 10
# Passwords that a browser keeps.
MAX_UNLOCKED = 50


@blueprint.post("/videos/<video_id>/unlock")
@policy(Policy.ANYONE, rate=Rate.SIGN_IN)
async def unlock(video_id: str) -> ResponseReturnValue:
    """Let the browser watch a video if the password is right, or show the form again.

    A player in a frame of another site can't keep a cookie, so it is sent to an address with the
    permission.
    """
    form = await request.form
    next_path = own_path(form.get("next", ""))
    parsed = parse_video_id(video_id)
    video = await web_context().videos.load(parsed) if parsed else None
    if video is None or video.unlock_id is None or not audience_of(video).is_locked:
        return redirect(next_path, 303)
    is_framed = next_path.startswith(url_for("embedding.embed", video_id=video.id))
    if is_framed:
        allow_framing(request.scope, framed_by(web_context().config.embed_origins))
    fault = await password_fault(f"video {video.id}", form, video.password_hash)
    if fault:
        page = await locked_page(next_path, video_id=video.id, fault=fault)
        return page, VideoLocked.status
    if is_framed:
        base = await unlocked_base(video.id, video.unlock_id)
        return redirect(base + next_path, 303)
    response = redirect(next_path, 303)
    remember(response, video.unlock_id)
    return response


async def password_fault(
    name: str, form: Mapping[str, str], password_hash: str | None
) -> str | None:
    """Return why the password of a form doesn't open something; None if it does.

    The tries for this name are counted.
    """
    address = state_of(request.scope).client
    try:
        await tries.begin(name, address, free=FREE_TRIES)
    except TooManyTries as exc:
        return exc.detail
    if not await web_context().passwords.is_right(form.get("password", ""), password_hash):
        return Message("This password is wrong. Check it, then try again.")
    await tries.forget(name, address)
    return None


def remember(response: Response, unlock_id: UUID) -> None:
    """Add an id to those that the browser keeps, in place of the oldest one if there are many."""
    earlier_ids = [earlier_id for earlier_id in unlocked_ids() if earlier_id != unlock_id]
    ids = [*earlier_ids, unlock_id][-MAX_UNLOCKED:]
    UNLOCKED.set(response, ".".join(map(str, ids)), web_context().config)
