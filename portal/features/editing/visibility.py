"""Form for the audience and the embedding sites of a video, and texts about visibilities.

Changes that others have saved since are merged, as in the form for the details.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import cast
from uuid import UUID

from quart import Blueprint, render_template, request
from quart.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from portal.accounts import directory
from portal.accounts.directory import Holder, fetch_holders, split_names
from portal.accounts.permissions import EVERYONES, Principal, Right
from portal.config.values import ANY_SITE, NO_SITE
from portal.database.models import Video, Visibility
from portal.errors import InvalidRequest, LinkNotValid, NotAllowed
from portal.features.editing.invitations import Invitation, invite_guests, renew
from portal.features.editing.pages import Body, EditForm, form_fragment
from portal.features.workshop.pages import announces_save, redirect_to_panel, render_workshop
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, policy, principal
from portal.http.composition import web_context
from portal.http.languages import gettext
from portal.http.schemas.access import AccessRecord
from portal.http.schemas.validation import validated
from portal.http.videos import read_video
from portal.locale.messages import Message
from portal.text import shown
from portal.videos.merging import Values
from portal.videos.reading import parse_video_id
from portal.videos.visibility import (
    VideoAccess,
    merge_access,
    mergeable,
    merged_access,
    recorded_access,
    shares_of,
)

blueprint = Blueprint("visibility", __name__)


# Translators: what an account or a group can do with a video that is shared with it.
RIGHTS = {Right.WATCH: Message("Can watch"), Right.EDIT: Message("Can edit")}
# Members of an audience that the form has as boxes below the choice `private`.
BOXES = ("signedInOnly", "hasPublicPage")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessForm(EditForm):
    """Form for the audience; `state` is the present audience in words.

    `choices` are the visibilities: value, name, and audience. `holders` are the accounts, groups
    and guests of the shares, and `invitations` the links of new guests. `added` are the names that
    were typed to share the video with, and `added_right` is the right that was chosen for them.
    """

    state: str
    choices: list[tuple[str, str, str]]
    portal_sites: str
    is_open_portal: bool
    holders: Sequence[Holder]
    has_password: bool
    invitations: Sequence[Invitation] = ()
    added: str = ""
    added_right: str = Right.WATCH

    @property
    def rights(self) -> dict[UUID, str]:
        """Return the typed rights by account or group."""
        return {UUID(share["id"]): share["right"] for share in self.typed["shares"]}


@blueprint.get("/videos/<video_id>/access/panel")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def panel(video_id: str) -> str:
    """Return the form with the recorded values."""
    form = await recorded_form(await read_video(video_id))
    return await render_template("editing/_access.html", form=form)


@blueprint.get("/directory")
@policy(Policy.PUBLISH)
async def suggest_holders() -> str:
    """Return accounts and groups that match the last of the typed names, as options of a list.

    The names are the first parameter: each form has its own name for the field.
    """
    earlier, comma, typed = next(iter(request.args.values()), "").rpartition(",")
    before = f"{earlier}{comma} " if comma else ""
    return await render_template(
        "editing/_holders.html", before=before, holders=await directory.suggest(typed)
    )


@blueprint.post("/videos/<video_id>/access")
@policy(Policy.EDIT)
async def save_access(video_id: str) -> ResponseReturnValue:
    """Save the audience, and show the result in the workshop."""
    form = await save(video_id)
    # Links of guests are shown once, so they can't be on the page after a redirect.
    if not form.is_saved or form.invitations:
        return await render_workshop(form.video, {"access": form}), form.status
    return redirect_to_panel(form.video.id, "access", saved="access", kept=form.kept)


@blueprint.post("/videos/<video_id>/access/guests/<uuid:guest_id>")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def renew_link(video_id: str, guest_id: UUID) -> str:
    """Return the form with a new link of a guest, in place of the former one."""
    form = await recorded_form(await read_video(video_id))
    try:
        form = replace(form, invitations=[await renew(guest_id)])
    except (LinkNotValid, NotAllowed) as exc:
        form = replace(form, faults={"shares": exc.detail})
    return await render_template("editing/_access.html", form=form)


@blueprint.post("/videos/<video_id>/access/panel")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def save_panel(video_id: str) -> ResponseReturnValue:
    """Save the audience, and return the form with the result."""
    return await form_fragment("editing/_access.html", form=await save(video_id))


async def read_panel(video: Video) -> dict[str, object]:
    """Return the form, and whether the page announces that it was saved."""
    is_saved = announces_save("access")
    unchanged_fields = request.args.getlist("kept")
    form = await recorded_form(video, kept=unchanged_fields, is_saved=is_saved)
    return {"access": form}


async def recorded_form(
    video: Video, *, kept: Collection[str] = (), is_saved: bool = False
) -> AccessForm:
    """Return the form with the recorded values, for the signed-in person."""
    person = await principal()
    access = recorded_access(video)
    body = body_of(access)
    return AccessForm(
        video=video,
        base=body,
        typed=body,
        kept=kept,
        is_saved=is_saved,
        state=_audience_words(access, person, video.owner_id),
        holders=await fetch_holders([share.holder_id for share in access.shares]),
        has_password=access.unlock_id is not None,
        choices=visibility_choices(person, video.owner_id),
        portal_sites=_portal_sites(web_context().config.embed_origins),
        is_open_portal=person == EVERYONES,
    )


async def save(video_id: str) -> AccessForm:
    """Save the audience of the request's form; return the form with the result."""
    video = await read_video(video_id)
    fields = await request.form
    base = read_access(fields, prefix="base.")
    typed = _read_typed_access(fields)
    typed, holders = await without_removed(typed)
    try:
        body = with_password(await with_added(typed, fields), fields)
        record, invitations = await invite_guests(validated(AccessRecord, body))
        changed = await record.value()
    except InvalidRequest as exc:
        form = await recorded_form(video)
        return replace(
            form,
            base=base,
            typed=typed,
            faults=exc.by_field,
            status=exc.status,
            holders=holders,
            added=fields.get("added", ""),
            added_right=fields.get("addedRight", ""),
        )
    password = await record.password_change(web_context().passwords)
    video, merged = await merge_access(
        video.id, changed, base=_former_access(base), password=password
    )
    own = merged_access(merged)
    other = recorded_access(video)
    holders = await fetch_holders([share.holder_id for share in (*own.shares, *other.shares)])
    person = await principal()
    form = replace(await recorded_form(video), holders=holders, invitations=invitations)
    merged_form = form.after(
        merged,
        typed=body_of(own),
        own=_access_texts(own, holders, person, video.owner_id),
        other=_access_texts(other, holders, person, video.owner_id),
    )
    return cast(AccessForm, merged_form)


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
    typed = read_access(form)
    base = read_access(form, prefix="base.")
    if form.get("choice.visibility") == "theirs":
        typed |= {name: base[name] for name in ("visibility", *BOXES)}
    for name in ("embedOrigins", "shares"):
        if form.get(f"choice.{name}") == "theirs":
            typed[name] = base[name]
    return typed


def read_access(form: MultiDict[str, str], *, prefix: str = "") -> Body:
    """Read the fields with this prefix. The boxes only count for private videos."""
    visibility = form.get(f"{prefix}visibility", "")
    boxes = [name for name in BOXES if f"{prefix}{name}" in form]
    is_private = visibility == Visibility.PRIVATE
    return {
        "visibility": visibility,
        **{name: is_private and name in boxes for name in BOXES},
        "embedOrigins": form.get(f"{prefix}embedOrigins", "").split(),
        "shares": _read_shares(form.getlist(f"{prefix}share")),
    }


def _read_shares(fields: Sequence[str]) -> list[dict[str, str]]:
    """Return the shares in fields such as `ID:watch`; those with another right are left out."""
    pairs = [value.partition(":") for value in fields]
    return [
        {"id": holder_id, "right": right}
        for holder_id, _, right in pairs
        if right in RIGHTS and parse_video_id(holder_id)
    ]


async def without_removed(typed: Body) -> tuple[Body, list[Holder]]:
    """Return typed values without shares of removed accounts, groups and guests; and the others.

    That they were removed since the form was made is not the person's mistake.
    """
    holders = await fetch_holders([UUID(share["id"]) for share in typed["shares"]])
    present = {str(holder.id) for holder in holders}
    shares = [share for share in typed["shares"] if share["id"] in present]
    return {**typed, "shares": shares}, holders


async def with_added(typed: Body, form: MultiDict[str, str]) -> Body:
    """Return typed values with the accounts and groups whose names were typed to be added.

    If the person wants it, addresses without an account are those of guests.
    """
    names = split_names(form.get("added", ""))
    invites = "invite" in form
    holders = await directory.find_by_names(names) if invites else {}
    added = [
        {
            "name": name,
            "right": form.get("addedRight", ""),
            "kind": "guest" if invites and "@" in name and name.lower() not in holders else None,
        }
        for name in names
    ]
    return {**typed, "shares": [*typed["shares"], *added]}


def with_password(typed: Body, form: MultiDict[str, str]) -> Body:
    """Return typed values with the change of the password of a private video or series."""
    password = form.get("password", "")
    is_private = typed["visibility"] == Visibility.PRIVATE
    is_changed = is_private and (password or "removePassword" in form)
    return {**typed, "password": password if is_changed else None}


def _former_access(base: Body) -> Values:
    """Return the access of a form's base as merged values."""
    return mergeable(
        base["visibility"],
        base["embedOrigins"],
        shares_of({UUID(share["id"]): Right(share["right"]) for share in base["shares"]}),
        signed_in_only=base["signedInOnly"],
        has_public_page=base["hasPublicPage"],
    )


def body_of(access: VideoAccess) -> Body:
    """Return access as the body of the API, whose shares have ids."""
    return {
        "visibility": access.visibility.value,
        "signedInOnly": access.signed_in_only,
        "hasPublicPage": access.has_public_page,
        "embedOrigins": list(access.embed_origins),
        "shares": [
            {"id": str(share.holder_id), "right": share.right.value} for share in access.shares
        ],
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
    """Return the people who can see a video and its page, in words that follow "Visible to:"."""
    viewers = _viewer_words(access, person, owner_id)
    if access.has_public_page:
        # Translators: `viewers` is a text such as "everyone with an account".
        return Message("%(viewers)s; the page: everyone", viewers=viewers)
    return viewers


def _viewer_words(access: VideoAccess, person: Principal, owner_id: UUID | None) -> Message:
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
    if access.unlock_id:
        # Translators: the audience of a video, after "Visible to:" or "Private:".
        return Message("anyone with the link and the password")
    if access.signed_in_only:
        # Translators: the audience of a video, after "Visible to:" or "Private:".
        return Message("everyone with an account")
    if access.shares and _is_owner(person, owner_id):
        # Translators: the audience of a video, after "Visible to:" or "Private:".
        return Message("you, admins, owners, and those you share it with")
    if access.shares:
        # Translators: the audience of a video, after "Visible to:" or "Private:".
        return Message("the person who published it, admins, owners, and those it's shared with")
    if _is_owner(person, owner_id):
        # Translators: the audience of a video, after "Visible to:" or "Private:".
        return Message("you, admins and owners")
    # Translators: the audience of a video, after "Visible to:" or "Private:".
    return Message("the person who published it, admins and owners")


def _access_texts(
    access: VideoAccess, holders: Sequence[Holder], person: Principal, owner_id: UUID | None
) -> Body:
    """Return each field as a text for people."""
    rights = {share.holder_id: share.right for share in access.shares}
    shares = [
        # Translators: an account or a group, and what it can do with a video.
        gettext("%(name)s: %(right)s", name=shown(holder.name), right=RIGHTS[rights[holder.id]])
        for holder in holders
        if holder.id in rights
    ]
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
        "shares": "\n".join(shares) or Message("Nobody"),
    }
