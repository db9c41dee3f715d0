"""What the form for a video's metadata shows: values, faults, and what two editors changed.

Values are in the shape of the JSON API's body, whether or not they keep its rules. A form bears the
values that it was made from as well, in hidden fields: its base.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from werkzeug.datastructures import MultiDict

from portal.database.models import Video
from portal.errors import FieldError
from portal.text import shown, split_tags
from portal.videos.editing import recorded
from portal.videos.merging import Merged
from portal.videos.metadata import EditableMetadata
from portal.web.api.metadata import VideoMetadata, metadata_record
from portal.web.composition import web_context
from portal.web.pages.conflicts import Conflict, in_words

Body = dict[str, Any]

CATEGORY_ID = re.compile(r"[0-9]{1,9}")
# The same faults as the JSON API names, in the words of a form.
EMPTY_WORDS = {"title": "Give the video a title.", "categoryIds": "Choose at least one category."}
# What sentences call the fields.
FIELD_WORDS = {
    "title": "the title",
    "description": "the description",
    "category_ids": "the categories",
    "tags": "the tags",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EditForm:
    """The form, as its template needs it.

    `conflicts` has the fields that someone else has changed, too, and otherwise. `kept` names those
    that someone else alone has changed since the form was made; their values are in it by now.
    `is_saved` tells that it was just saved.
    """

    video_id: str
    base: Body
    typed: Body
    categories: Mapping[int, str]
    faults: Mapping[str, str]
    conflicts: Mapping[str, Conflict]
    in_conflict: str
    kept: str
    is_saved: bool


def typed_metadata(form: MultiDict[str, str]) -> Body:
    """Read what was typed; the base, for fields of which someone else's value was chosen."""
    typed, base = read_metadata(form), read_metadata(form, prefix="base.")
    return {
        field: base[field] if form.get(f"choice.{field}") == "theirs" else value
        for field, value in typed.items()
    }


def read_metadata(form: MultiDict[str, str], *, prefix: str = "") -> Body:
    """Read the fields of these names. Browsers send line ends as CR LF, whatever was typed."""
    category_ids = form.getlist(f"{prefix}categoryIds")
    return {
        "title": form.get(f"{prefix}title", ""),
        "description": form.get(f"{prefix}description", "").replace("\r\n", "\n"),
        "categoryIds": [int(it) if CATEGORY_ID.fullmatch(it) else it for it in category_ids],
        "tags": form.get(f"{prefix}tags", ""),
    }


def base_metadata(base: Body) -> EditableMetadata:
    """The base of a form for services. It is compared and shown, never saved."""
    texts = {name: base[name] for name in ("title", "description", "tags")}
    return EditableMetadata(category_ids=tuple(base["categoryIds"]), **texts)


def recorded_body(metadata: EditableMetadata) -> Body:
    """Metadata as the body of the JSON API."""
    return metadata_record(metadata).model_dump()


def edit_form(
    video_id: object,
    categories: Mapping[int, str],
    *,
    base: Body,
    typed: Body | None = None,
    errors: Sequence[FieldError] = (),
    kept: Iterable[str] = (),
    is_saved: bool = False,
) -> EditForm:
    """The form with what was typed, or with what it is made from."""
    shown_body = base if typed is None else typed
    return EditForm(
        video_id=str(video_id),
        base=base,
        typed=shown_body,
        categories=categories,
        faults=_faults(errors, shown_body),
        conflicts={},
        in_conflict="",
        kept=in_words(kept, FIELD_WORDS),
        is_saved=is_saved,
    )


async def recorded_form(
    found: Video, *, kept: Iterable[str] = (), is_saved: bool = False
) -> EditForm:
    """The form, made from what is recorded."""
    names = await web_context().categories.names()
    body = recorded_body(recorded(found))
    return edit_form(found.id, names, base=body, kept=kept, is_saved=is_saved)


def conflict_form(
    video_id: object,
    categories: Mapping[int, str],
    *,
    base: EditableMetadata,
    theirs: EditableMetadata,
    merged: Merged,
) -> EditForm:
    """The form with what could be merged, made from what is recorded by now.

    Who sends it has seen that, and says of each conflict whose value is to stay.
    """
    mine = EditableMetadata(**merged.values)
    texts = [_texts(it, categories) for it in (base, mine, theirs)]
    return EditForm(
        video_id=str(video_id),
        base=recorded_body(theirs),
        typed=recorded_body(mine),
        categories=categories,
        faults={},
        conflicts={
            VideoMetadata.model_fields[name].alias or name: Conflict.between(
                *(it[name] for it in texts)
            )
            for name in merged.conflicts
        },
        in_conflict=in_words(merged.conflicts, FIELD_WORDS),
        kept=in_words(merged.kept, FIELD_WORDS),
        is_saved=False,
    )


def _texts(metadata: EditableMetadata, categories: Mapping[int, str]) -> dict[str, str]:
    """Each field as people read it."""
    names = [name for number, name in categories.items() if number in metadata.category_ids]
    return {
        "title": shown(metadata.title),
        "description": shown(metadata.description),
        "category_ids": ", ".join(names),
        "tags": shown(", ".join(split_tags(metadata.tags))),
    }


def _faults(errors: Sequence[FieldError], typed: Body) -> dict[str, str]:
    """The first message for each field."""
    faults: dict[str, str] = {}
    for error in errors:
        field = error.pointer.split("/")[1] if error.pointer else ""
        is_empty = not typed.get(field)
        words = EMPTY_WORDS.get(field, error.message) if is_empty else error.message
        faults.setdefault(field, words)
    return faults
