"""Form for the audience and the embedding sites of a video, and texts about visibilities.

Changes that others have saved since are merged, as in the form for the details.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from quart import Blueprint, render_template, request
from quart.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from portal.accounts.permissions import EVERYONES, Principal
from portal.config.values import ANY_SITE, NO_SITE
from portal.database.models import Video, Visibility
from portal.errors import InvalidRequest
from portal.features.editing.pages import Body, EditForm, form_fragment
from portal.features.workshop.pages import redirect_to_panel, render_workshop
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, policy, principal
from portal.http.composition import web_context
from portal.http.schemas.access import AccessRecord
from portal.http.schemas.validation import recorded_shape, validated
from portal.http.videos import read_video
from portal.locale.messages import Message
from portal.text import shown
from portal.videos.visibility import (
    VideoAccess,
    merge_access,
    mergeable,
    merged_access,
    recorded_access,
)

blueprint = Blueprint("visibility", __name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessForm(EditForm):
    """Form for the audience; `state` is the present audience in words.

    `choices` are the visibilities: value, name, and audience.
    """

    state: str
    choices: list[tuple[str, str, str]]
    portal_sites: str
    is_open_portal: bool


@blueprint.get("/videos/<video_id>/access/panel")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def panel(video_id: str) -> str:
    """Return the form with the recorded values."""
    form = await recorded_form(await read_video(video_id))
    return await render_template("editing/_access.html", form=form)


@blueprint.post("/videos/<video_id>/access")
@policy(Policy.EDIT)
async def save_access(video_id: str) -> ResponseReturnValue:
    """Save the audience, and show the result in the workshop."""
    form = await save(video_id)
    if not form.is_saved:
        return await render_workshop(form.video, {"access": form}), form.status
    return redirect_to_panel(form.video.id, "access", saved="access", kept=form.kept)


@blueprint.post("/videos/<video_id>/access/panel")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def save_panel(video_id: str) -> ResponseReturnValue:
    """Save the audience, and return the form with the result."""
    return await form_fragment("editing/_access.html", form=await save(video_id))


async def read_panel(video: Video) -> dict[str, object]:
    """Return the form, and whether the page announces that it was saved."""
    is_saved = request.args.get("saved") == "access"
    unchanged_fields = request.args.getlist("kept")
    form = await recorded_form(video, kept=unchanged_fields, is_saved=is_saved)
    return {"access": form}


async def recorded_form(
    video: Video, *, kept: Collection[str] = (), is_saved: bool = False
) -> AccessForm:
    """Return the form with the recorded values, for the signed-in person."""
    person = await principal()
    access = recorded_access(video)
    body = recorded_shape(AccessRecord, access).model_dump()
    return AccessForm(
        video=video,
        base=body,
        typed=body,
        kept=kept,
        is_saved=is_saved,
        state=_audience_words(access, person, video.owner_id),
        choices=visibility_choices(person, video.owner_id),
        portal_sites=_portal_sites(web_context().config.embed_origins),
        is_open_portal=person == EVERYONES,
    )


async def save(video_id: str) -> EditForm:
    """Save the audience of the request's form; return the form with the result."""
    video = await read_video(video_id)
    fields = await request.form
    base = _read_access(fields, prefix="base.")
    typed = _read_typed_access(fields)
    try:
        changed = validated(AccessRecord, typed).value()
    except InvalidRequest as exc:
        form = await recorded_form(video)
        return replace(form, base=base, typed=typed, faults=exc.by_field, status=exc.status)
    former = mergeable(
        base["visibility"], base["embedOrigins"], signed_in_only=base["signedInOnly"]
    )
    video, merged = await merge_access(video.id, changed, base=former)
    own = merged_access(merged)
    person = await principal()
    form = await recorded_form(video)
    return form.after(
        merged,
        typed=recorded_shape(AccessRecord, own).model_dump(),
        own=_access_texts(own, person, video.owner_id),
        other=_access_texts(recorded_access(video), person, video.owner_id),
    )


def visibility_choices(person: Principal, owner_id: UUID | None) -> list[tuple[str, str, str]]:
    """Return the visibilities: value, name, and audience."""
    # Translators: "Public", "Unlisted" and "Private" are visibilities of a video.
    return [
        ("public", Message("Public"), Message("Everyone. Listed in the library.")),
        ("unlisted", Message("Unlisted"), Message("Anyone with the link.")),
        ("private", Message("Private"), _private_words(person, owner_id)),
    ]


def _read_typed_access(form: MultiDict[str, str]) -> Body:
    """Read the typed values; the base where the other editor's value was chosen."""
    typed = _read_access(form)
    base = _read_access(form, prefix="base.")
    if form.get("choice.visibility") == "theirs":
        typed |= {name: base[name] for name in ("visibility", "signedInOnly")}
    if form.get("choice.embedOrigins") == "theirs":
        typed["embedOrigins"] = base["embedOrigins"]
    return typed


def _read_access(form: MultiDict[str, str], *, prefix: str = "") -> Body:
    """Read the fields with this prefix. The box only counts for private videos."""
    visibility = form.get(f"{prefix}visibility", "")
    is_ticked = f"{prefix}signedInOnly" in form
    return {
        "visibility": visibility,
        "signedInOnly": visibility == Visibility.PRIVATE and is_ticked,
        "embedOrigins": form.get(f"{prefix}embedOrigins", "").split(),
    }


def _portal_sites(origins: Sequence[str]) -> str:
    """Return the portal's own setting of the sites that may embed videos, in words."""
    if ANY_SITE in origins:
        # Translators: the sites that may embed videos.
        return Message("any site")
    if NO_SITE in origins:
        # Translators: the sites that may embed videos.
        return Message("no other site")
    return ", ".join(map(shown, origins))


def _is_owner(person: Principal, owner_id: UUID | None) -> bool:
    return person.account_id is not None and person.account_id == owner_id


def _private_words(person: Principal, owner_id: UUID | None) -> Message:
    if person == EVERYONES:
        return Message("Only you and admins (needs accounts).")
    if _is_owner(person, owner_id):
        return Message("You, admins and owners.")
    return Message("The person who published it, admins and owners.")


def _audience_words(access: VideoAccess, person: Principal, owner_id: UUID | None) -> Message:
    """Return the people who can watch a video, in words that follow "Visible to:"."""
    if access.visibility is Visibility.PUBLIC:
        # Translators: the audience of a video, after "Visible to:" or "Public:".
        return Message("everyone")
    if access.visibility is Visibility.UNLISTED:
        # Translators: the audience of a video, after "Visible to:" or "Unlisted:".
        return Message("anyone with the link")
    if person == EVERYONES:
        # Translators: the audience of a video, after "Visible to:" or "Private:".
        return Message("everyone, because this portal has no accounts yet")
    if access.signed_in_only:
        # Translators: the audience of a video, after "Visible to:" or "Private:".
        return Message("everyone with an account")
    if _is_owner(person, owner_id):
        # Translators: the audience of a video, after "Visible to:" or "Private:".
        return Message("you, admins and owners")
    # Translators: the audience of a video, after "Visible to:" or "Private:".
    return Message("the person who published it, admins and owners")


def _access_texts(access: VideoAccess, person: Principal, owner_id: UUID | None) -> Body:
    """Return each field as a text for people."""
    audience = _audience_words(access, person, owner_id)
    # Translators: the visibility of a video, and its audience.
    words = {
        Visibility.PUBLIC: Message("Public: %(audience)s", audience=audience),
        Visibility.UNLISTED: Message("Unlisted: %(audience)s", audience=audience),
        Visibility.PRIVATE: Message("Private: %(audience)s", audience=audience),
    }
    sites = "\n".join(map(shown, access.embed_origins))
    return {
        "visibility": words[access.visibility],
        "embedOrigins": sites or Message("The portal's setting"),
    }
