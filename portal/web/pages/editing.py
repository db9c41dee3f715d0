"""The form for a video's details in its workshop, and what a form shows of two editors' changes.

Values are in the shape of the JSON API's body, whether or not they keep its rules. A form bears the
values that it was made from as well, in hidden fields: its base. What others have saved since is
merged; a field that both changed shows both values.
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
from portal.text import shown, split_tags
from portal.videos.merging import Merged
from portal.videos.metadata import EditableMetadata, merge_metadata, recorded
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.schemas.metadata import VideoMetadata
from portal.web.schemas.validation import recorded_shape, validated
from portal.web.videos import read_video

blueprint = Blueprint("editing", __name__)

Body = dict[str, Any]

CATEGORY_ID = re.compile(r"[0-9]{1,9}")
# What else of the page tells of changes fetches itself again.
CHANGED = {"HX-Trigger": '{"video-changed": {"target": "body"}}'}


@dataclass(frozen=True, slots=True, kw_only=True)
class EditForm:
    """A form with what was typed, made from `base`.

    `conflicts` has my value and theirs of the fields that both changed. `kept` names those that
    someone else alone has changed since the form was made; their values are in it by now.
    """

    video: Video
    base: Body
    typed: Body
    status: int = 200
    faults: Mapping[str, str] = field(default_factory=dict)
    conflicts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    kept: Collection[str] = ()
    is_saved: bool = False

    def after(self, merged: Merged, typed: Body, mine: Body, theirs: Body) -> "EditForm":
        """This form once what was `typed` is merged: saved, or asking whose value is to stay.

        `mine` and `theirs` have the texts of the fields.
        """
        conflicts = {it: (mine[it], theirs[it]) for it in map(to_camel, merged.conflicts)}
        return replace(
            self,
            typed=typed,
            kept=[to_camel(it) for it in merged.kept],
            conflicts=conflicts,
            is_saved=not conflicts,
            status=409 if conflicts else 200,
        )


@blueprint.post("/videos/<video_id>/edit/details")
@policy(Policy.EDIT)
@fragment()
async def save_details(video_id: str) -> ResponseReturnValue:
    """Save, and show the form, which says what has come of it."""
    return await form_fragment("videos/_form.html", form=await save(video_id))


async def form_fragment(template: str, form: EditForm) -> ResponseReturnValue:
    """The form alone; once it is saved, with the head of the page, which shows some of it."""
    names = await web_context().categories.names()
    text = await render_template(template, form=form, categories=names)
    if not form.is_saved:
        return text, form.status
    head = await render_template("videos/_workshop_head.html", video=form.video, is_news=True)
    return text + head, CHANGED


def recorded_form(found: Video, *, kept: Collection[str] = (), is_saved: bool = False) -> EditForm:
    """The form, made from what is recorded."""
    body = _body(recorded(found))
    return EditForm(video=found, base=body, typed=body, kept=kept, is_saved=is_saved)


async def save(video_id: str) -> EditForm:
    """Save what the request's form holds; the form after that, which says what came of it."""
    found, sent = await read_video(video_id), await request.form
    categories = await web_context().categories.names()
    base, typed = _read(sent, prefix="base."), typed_metadata(sent)
    try:
        mine = validated(VideoMetadata, typed, context=categories).value()
    except InvalidRequest as exc:
        return EditForm(video=found, base=base, typed=typed, faults=exc.by_field, status=exc.status)
    texts = {name: base[name] for name in ("title", "description", "tags")}
    # Compared, and never saved.
    former = EditableMetadata(category_ids=tuple(base["categoryIds"]), **texts)
    video, merged = await merge_metadata(found.id, mine, base=former)
    mine = EditableMetadata(**merged.values)
    sides = [_texts(it, categories) for it in (mine, recorded(video))]
    return recorded_form(video).after(merged, _body(mine), *sides)


def typed_metadata(form: MultiDict[str, str]) -> Body:
    """Return the typed metadata, its tags with single spaces.

    A field for which the other editor's value was chosen has the value of the base.
    """
    typed = _read(form)
    base = _read(form, prefix="base.")
    if typed["tags"] != base["tags"]:
        typed["tags"] = " ".join(typed["tags"].split())
    return {
        name: base[name] if form.get(f"choice.{name}") == "theirs" else value
        for name, value in typed.items()
    }


def _read(form: MultiDict[str, str], *, prefix: str = "") -> Body:
    """Read the fields of these names. Browsers send line ends as CR LF, whatever was typed."""
    category_ids = form.getlist(f"{prefix}categoryIds")
    return {
        "title": form.get(f"{prefix}title", ""),
        "description": form.get(f"{prefix}description", "").replace("\r\n", "\n"),
        "categoryIds": [int(it) if CATEGORY_ID.fullmatch(it) else it for it in category_ids],
        "tags": form.get(f"{prefix}tags", ""),
    }


def _body(metadata: EditableMetadata) -> Body:
    return recorded_shape(VideoMetadata, metadata).model_dump()


def _texts(metadata: EditableMetadata, categories: Mapping[int, str]) -> Body:
    """Each field as people read it."""
    names = [name for number, name in categories.items() if number in metadata.category_ids]
    return {
        "title": shown(metadata.title),
        "description": shown(metadata.description),
        "categoryIds": ", ".join(names),
        "tags": shown(", ".join(split_tags(metadata.tags))),
    }
