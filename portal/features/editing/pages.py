"""Form for a video's details in the workshop, and the merging of two editors' changes in forms.

Values have the shape of the JSON API's body, valid or not. Hidden fields hold the form's base: the
values that it was rendered from. Changes that others have saved since are merged; a field that both
changed shows both values.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic.alias_generators import to_camel
from quart import Blueprint, render_template, request
from quart.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from portal.database.models import Video
from portal.errors import InvalidRequest
from portal.features.workshop.pages import announces_save, redirect_to_panel, render_workshop
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, policy
from portal.http.composition import web_context
from portal.http.schemas.metadata import VideoMetadata
from portal.http.schemas.validation import recorded_shape, validated
from portal.http.server.headers import VIDEO_CHANGED
from portal.http.videos import read_video
from portal.text import shown, split_tags
from portal.videos.merging import Merged
from portal.videos.metadata import EditableMetadata, merge_metadata, recorded

blueprint = Blueprint("editing", __name__)

Body = dict[str, Any]

CATEGORY_ID = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EditForm:
    """Form with `typed` values, rendered from `base`.

    `conflicts` has the editor's value and the other editor's for fields that both changed. `kept`
    names fields that only the other editor has changed since; the form has their values now.
    """

    video: Video
    base: Body
    typed: Body
    status: int = 200
    faults: Mapping[str, str] = field(default_factory=dict)
    conflicts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    kept: Collection[str] = ()
    is_saved: bool = False

    def after(self, merged: Merged, typed: Body, own: Body, other: Body) -> "EditForm":
        """Return the form after a merge: saved, or asking which values to keep.

        `own` and `other` are the two editors' values as texts.
        """
        names = [to_camel(name) for name in merged.conflicts]
        conflicts = {name: (own[name], other[name]) for name in names}
        return replace(
            self,
            typed=typed,
            kept=[to_camel(name) for name in merged.kept],
            conflicts=conflicts,
            is_saved=not conflicts,
            status=409 if conflicts else 200,
        )


@blueprint.post("/videos/<video_id>/edit")
@policy(Policy.EDIT)
async def save_details(video_id: str) -> ResponseReturnValue:
    """Save the details, and show the result in the workshop."""
    form = await save(video_id)
    if not form.is_saved:
        return await render_workshop(form.video, {"details": form}), form.status
    return redirect_to_panel(form.video.id, "save-button", saved="details", kept=form.kept)


@blueprint.post("/videos/<video_id>/edit/details")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def save_details_fragment(video_id: str) -> ResponseReturnValue:
    """Save the details, and return the form with the result."""
    return await form_fragment("editing/_details.html", form=await save(video_id))


async def form_fragment(template: str, form: EditForm) -> ResponseReturnValue:
    """Render a form; once it is saved, with the head of the page, which shows its values."""
    names = await web_context().categories.names()
    text = await render_template(template, form=form, categories=names)
    if not form.is_saved:
        return text, form.status
    head = await render_template("workshop/_head.html", video=form.video, is_news=True)
    return text + head, VIDEO_CHANGED


async def read_panel(video: Video) -> dict[str, object]:
    """Return the form, and whether the page announces that it was saved."""
    is_saved = announces_save("details")
    form = recorded_form(video, kept=request.args.getlist("kept"), is_saved=is_saved)
    return {"details": form, "categories": await web_context().categories.names()}


def recorded_form(video: Video, *, kept: Collection[str] = (), is_saved: bool = False) -> EditForm:
    """Return the form with the recorded values."""
    body = _metadata_body(recorded(video))
    return EditForm(video=video, base=body, typed=body, kept=kept, is_saved=is_saved)


async def save(video_id: str) -> EditForm:
    """Save the details of the request's form; return the form with the result."""
    video = await read_video(video_id)
    fields = await request.form
    categories = await web_context().categories.names()
    base = _read_metadata(fields, prefix="base.")
    typed = typed_metadata(fields)
    try:
        changed = validated(VideoMetadata, typed, context=categories).value()
    except InvalidRequest as exc:
        return EditForm(video=video, base=base, typed=typed, faults=exc.by_field, status=exc.status)
    texts = {name: base[name] for name in ("title", "description", "tags")}
    # Unvalidated, because it is only compared and never saved.
    former = EditableMetadata(category_ids=tuple(base["categoryIds"]), **texts)
    video, merged = await merge_metadata(video.id, changed, base=former)
    own = EditableMetadata(**merged.values)
    return recorded_form(video).after(
        merged,
        typed=_metadata_body(own),
        own=_metadata_texts(own, categories),
        other=_metadata_texts(recorded(video), categories),
    )


def typed_metadata(form: MultiDict[str, str]) -> Body:
    """Return the typed metadata, its tags with single spaces.

    A field for which the other editor's value was chosen has the value of the base.
    """
    typed = _read_metadata(form)
    base = _read_metadata(form, prefix="base.")
    if typed["tags"] != base["tags"]:
        typed["tags"] = " ".join(typed["tags"].split())
    return {
        name: base[name] if form.get(f"choice.{name}") == "theirs" else value
        for name, value in typed.items()
    }


def _read_metadata(form: MultiDict[str, str], *, prefix: str = "") -> Body:
    """Read the fields with this prefix. Browsers send line ends as CR LF."""
    category_ids = form.getlist(f"{prefix}categoryIds")
    return {
        "title": form.get(f"{prefix}title", ""),
        "description": form.get(f"{prefix}description", "").replace("\r\n", "\n"),
        "categoryIds": [
            int(text) if CATEGORY_ID.fullmatch(text) else text for text in category_ids
        ],
        "tags": form.get(f"{prefix}tags", ""),
    }


def _metadata_body(metadata: EditableMetadata) -> Body:
    return recorded_shape(VideoMetadata, metadata).model_dump()


def _metadata_texts(metadata: EditableMetadata, categories: Mapping[int, str]) -> Body:
    """Return each field as a text for people."""
    names = [name for number, name in categories.items() if number in metadata.category_ids]
    return {
        "title": shown(metadata.title),
        "description": shown(metadata.description),
        "categoryIds": ", ".join(names),
        "tags": shown(", ".join(split_tags(metadata.tags))),
    }
