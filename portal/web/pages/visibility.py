"""Who may see a video and which sites may frame it: the words for it, and the form in its workshop.

The form is merged with what others have saved since, as that for the details is.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from uuid import UUID

from quart import Blueprint, render_template, request
from quart.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from portal.accounts.permissions import EVERYONES, Principal
from portal.config.values import ANY_SITE, NO_SITE
from portal.database.models import Video, Visibility
from portal.errors import InvalidRequest
from portal.text import shown
from portal.videos.visibility import (
    VideoAccess,
    merge_access,
    mergeable,
    merged_access,
    recorded_access,
)
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.pages.editing import Body, EditForm, form_fragment
from portal.web.schemas.access import AccessRecord
from portal.web.schemas.validation import recorded_shape, validated
from portal.web.videos import read_video

blueprint = Blueprint("visibility", __name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessForm(EditForm):
    """The form; `state` says who may see the video now.

    `choices` are the visibilities: value, name, and who sees such a video.
    """

    state: str
    choices: list[tuple[str, str, str]]
    portal_sites: str
    is_open_portal: bool


@blueprint.get("/videos/<video_id>/access/panel")
@policy(Policy.EDIT)
@fragment()
async def panel(video_id: str) -> str:
    """The form with what is recorded."""
    form = await recorded_form(await read_video(video_id))
    return await render_template("videos/_access.html", form=form)


@blueprint.post("/videos/<video_id>/access/panel")
@policy(Policy.EDIT)
@fragment()
async def save_panel(video_id: str) -> ResponseReturnValue:
    """Save, and show the form, which says what has come of it."""
    return await form_fragment("videos/_access.html", form=await save(video_id))


async def recorded_form(
    video: Video, *, kept: Collection[str] = (), is_saved: bool = False
) -> AccessForm:
    """The form, made from what is recorded, for who asks."""
    who, access = await principal(), recorded_access(video)
    body = recorded_shape(AccessRecord, access).model_dump()
    names = {ANY_SITE: "any site", NO_SITE: "no other site"}
    return AccessForm(
        video=video,
        base=body,
        typed=body,
        kept=kept,
        is_saved=is_saved,
        state=_audience_words(access, who, video.owner_id),
        choices=visibility_choices(who, video.owner_id),
        portal_sites=", ".join(
            names.get(it, shown(it)) for it in web_context().config.embed_origins
        ),
        is_open_portal=who == EVERYONES,
    )


async def save(video_id: str) -> EditForm:
    """Save what the request's form holds; the form after that, which says what came of it."""
    found, sent = await read_video(video_id), await request.form
    base, typed = _read(sent, prefix="base."), _typed(sent)
    try:
        mine = validated(AccessRecord, typed).value()
    except InvalidRequest as exc:
        form = await recorded_form(found)
        return replace(form, base=base, typed=typed, faults=exc.by_field, status=exc.status)
    former = mergeable(
        base["visibility"], base["embedOrigins"], signed_in_only=base["signedInOnly"]
    )
    video, merged = await merge_access(found.id, mine, base=former)
    mine, who = merged_access(merged), await principal()
    sides = [_texts(it, who, video.owner_id) for it in (mine, recorded_access(video))]
    typed = recorded_shape(AccessRecord, mine).model_dump()
    return (await recorded_form(video)).after(merged, typed, *sides)


def visibility_choices(who: Principal, owner_id: UUID | None) -> list[tuple[str, str, str]]:
    """The visibilities: value, name, and who sees such a video."""
    return [
        ("public", "Public", "Everyone. Listed in the library."),
        ("unlisted", "Unlisted", "Anyone with the link."),
        ("private", "Private", f"{_private_words(who, owner_id)}."),
    ]


def _typed(form: MultiDict[str, str]) -> Body:
    """Read what was typed; the base, for what of someone else's was chosen."""
    typed, base = _read(form), _read(form, prefix="base.")
    if form.get("choice.visibility") == "theirs":
        typed |= {name: base[name] for name in ("visibility", "signedInOnly")}
    if form.get("choice.embedOrigins") == "theirs":
        typed["embedOrigins"] = base["embedOrigins"]
    return typed


def _read(form: MultiDict[str, str], *, prefix: str = "") -> Body:
    """Read the fields of these names. The box counts for a private video only."""
    visibility = form.get(f"{prefix}visibility", "")
    is_ticked = f"{prefix}signedInOnly" in form
    return {
        "visibility": visibility,
        "signedInOnly": visibility == Visibility.PRIVATE and is_ticked,
        "embedOrigins": form.get(f"{prefix}embedOrigins", "").split(),
    }


def _private_words(who: Principal, owner_id: UUID | None) -> str:
    if who == EVERYONES:
        return "Only you and admins (needs accounts)"
    is_own = who.account_id is not None and who.account_id == owner_id
    return f"{'You' if is_own else 'The person who published it'}, admins and owners"


def _audience_words(access: VideoAccess, who: Principal, owner_id: UUID | None) -> str:
    if access.visibility is Visibility.PUBLIC:
        return "everyone"
    if access.visibility is Visibility.UNLISTED:
        return "anyone with the link"
    if who == EVERYONES:
        return "everyone, because this portal has no accounts yet"
    if access.signed_in_only:
        return "everyone with an account"
    words = _private_words(who, owner_id)
    return words[0].lower() + words[1:]


def _texts(access: VideoAccess, who: Principal, owner_id: UUID | None) -> Body:
    """Each field as people read it."""
    words = f"{access.visibility.capitalize()}: {_audience_words(access, who, owner_id)}"
    sites = "\n".join(map(shown, access.embed_origins))
    return {"visibility": words, "embedOrigins": sites or "The portal's setting"}
