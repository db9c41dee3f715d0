"""What the form for a video's metadata shows: values, faults, and what someone else has saved."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from werkzeug.datastructures import MultiDict

from portal.database.models import Video
from portal.errors import FieldError
from portal.text import split_tags
from portal.videos.editing import recorded
from portal.videos.metadata import EditableMetadata

CATEGORY_ID = re.compile(r"[0-9]{1,9}")
# The same faults as the JSON API names, in the words of a form.
EMPTY_WORDS = {"title": "Give the video a title.", "categoryIds": "Choose at least one category."}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedMetadata:
    """What someone typed, whether or not it keeps the rules. Categories are as they were sent."""

    title: str
    description: str
    category_ids: tuple[str, ...]
    tags: str

    def body(self) -> dict[str, Any]:
        """As the JSON API would be sent it."""
        numbers = [int(it) if CATEGORY_ID.fullmatch(it) else it for it in self.category_ids]
        texts = {"title": self.title, "description": self.description, "tags": self.tags}
        return {**texts, "categoryIds": numbers}


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """What someone else has saved meanwhile, of the fields where it differs; None elsewhere."""

    title: str | None
    description: str | None
    categories: list[str] | None
    tags: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditForm:
    """The form, as its template needs it."""

    video_id: str
    version: int
    typed: TypedMetadata
    categories: Mapping[int, str]
    faults: Mapping[str, str]
    theirs: Theirs | None


def typed_metadata(form: MultiDict[str, str]) -> TypedMetadata:
    """Read a form. Browsers send line ends as CR LF, whatever was typed."""
    return TypedMetadata(
        title=form.get("title", ""),
        description=form.get("description", "").replace("\r\n", "\n"),
        category_ids=tuple(form.getlist("categoryIds")),
        tags=form.get("tags", ""),
    )


def edit_form(
    video: Video,
    categories: Mapping[int, str],
    *,
    typed: TypedMetadata | None = None,
    version: int | None = None,
    errors: Sequence[FieldError] = (),
    is_conflict: bool = False,
) -> EditForm:
    """The form with what was typed, or with what is recorded.

    In a conflict, give no version: the form bears the newest, so that whoever sends it again has
    seen that.
    """
    now = recorded(video)
    shown = typed or _as_typed(now)
    return EditForm(
        video_id=str(video.id),
        version=video.metadata_version if version is None else version,
        typed=shown,
        categories=categories,
        faults=_faults(errors, shown),
        theirs=_theirs(now, shown, categories) if is_conflict else None,
    )


def _as_typed(metadata: EditableMetadata) -> TypedMetadata:
    category_ids = tuple(str(number) for number in metadata.category_ids)
    return TypedMetadata(**asdict(metadata) | {"category_ids": category_ids})


def _faults(errors: Sequence[FieldError], typed: TypedMetadata) -> dict[str, str]:
    """The first message for each field."""
    faults: dict[str, str] = {}
    body = typed.body()
    for error in errors:
        field = error.pointer.split("/")[1] if error.pointer else ""
        is_empty = not body.get(field)
        words = EMPTY_WORDS.get(field, error.message) if is_empty else error.message
        faults.setdefault(field, words)
    return faults


def _theirs(theirs: EditableMetadata, ours: TypedMetadata, categories: Mapping[int, str]) -> Theirs:
    theirs_ids = {str(number) for number in theirs.category_ids}
    names = [categories[number] for number in theirs.category_ids if number in categories]
    return Theirs(
        title=theirs.title if theirs.title != ours.title else None,
        description=theirs.description if theirs.description != ours.description else None,
        categories=names if theirs_ids != set(ours.category_ids) else None,
        tags=", ".join(split_tags(theirs.tags)) if theirs.tags != ours.tags else None,
    )
