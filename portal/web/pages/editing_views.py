"""What the form for a video's metadata shows: values, faults, and what someone else has saved.

Values are in the shape of the JSON API's body, whether or not they keep its rules.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from werkzeug.datastructures import MultiDict

from portal.database.models import Video
from portal.errors import FieldError
from portal.text import split_tags
from portal.videos.editing import recorded
from portal.web.api.metadata_shapes import metadata_record

Body = dict[str, Any]

CATEGORY_ID = re.compile(r"[0-9]{1,9}")
# The same faults as the JSON API names, in the words of a form.
EMPTY_WORDS = {"title": "Give the video a title.", "categoryIds": "Choose at least one category."}


@dataclass(frozen=True, slots=True, kw_only=True)
class EditForm:
    """The form, as its template needs it.

    `theirs` is what someone else has saved meanwhile, in words, of the fields where it differs
    from what was typed; None unless there is a conflict.
    """

    video_id: str
    version: int
    typed: Body
    categories: Mapping[int, str]
    faults: Mapping[str, str]
    theirs: Mapping[str, str] | None


def typed_metadata(form: MultiDict[str, str]) -> Body:
    """Read a form. Browsers send line ends as CR LF, whatever was typed."""
    category_ids = form.getlist("categoryIds")
    return {
        "title": form.get("title", ""),
        "description": form.get("description", "").replace("\r\n", "\n"),
        "categoryIds": [int(it) if CATEGORY_ID.fullmatch(it) else it for it in category_ids],
        "tags": form.get("tags", ""),
    }


def edit_form(
    video: Video,
    categories: Mapping[int, str],
    *,
    typed: Body | None = None,
    version: int | None = None,
    errors: Sequence[FieldError] = (),
    is_conflict: bool = False,
) -> EditForm:
    """The form with what was typed, or with what is recorded.

    In a conflict, give no version: the form bears the newest, so that whoever sends it again has
    seen that.
    """
    saved = metadata_record(recorded(video)).model_dump()
    shown = typed or saved
    return EditForm(
        video_id=str(video.id),
        version=video.metadata_version if version is None else version,
        typed=shown,
        categories=categories,
        faults=_faults(errors, shown),
        theirs=_theirs(saved, shown, categories) if is_conflict else None,
    )


def _faults(errors: Sequence[FieldError], typed: Body) -> dict[str, str]:
    """The first message for each field."""
    faults: dict[str, str] = {}
    for error in errors:
        field = error.pointer.split("/")[1] if error.pointer else ""
        is_empty = not typed.get(field)
        words = EMPTY_WORDS.get(field, error.message) if is_empty else error.message
        faults.setdefault(field, words)
    return faults


def _theirs(saved: Body, typed: Body, categories: Mapping[int, str]) -> dict[str, str]:
    names = [categories[number] for number in saved["categoryIds"] if number in categories]
    words = {**saved, "categoryIds": ", ".join(names), "tags": ", ".join(split_tags(saved["tags"]))}
    # Categories have no order.
    theirs, ours = ({**it, "categoryIds": set(it["categoryIds"])} for it in (saved, typed))
    return {field: words[field] for field in words if theirs[field] != ours[field]}
