"""Two editors' changes of the same metadata become one, or a conflict; nobody's are lost."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.text import split_tags
from portal.videos.merging import Merged, merge
from portal.videos.metadata import MERGED_FIELDS, EditableMetadata
from portal.videos.visibility import MERGED_FIELDS as ACCESS_FIELDS
from portal.videos.visibility import mergeable

BASE = EditableMetadata(title="Base", description="a\nb", category_ids=(1, 2), tags="x, y")
LONG_TAGS = "x, y, " + "m" * 400


def merged(base: EditableMetadata, mine: EditableMetadata, theirs: EditableMetadata) -> Merged:
    return merge(MERGED_FIELDS, base=asdict(base), mine=asdict(mine), theirs=asdict(theirs))


@pytest.mark.parametrize(
    ("mine", "theirs", "expected", "kept", "conflicts"),
    [
        # A field that one of two changed is that one's.
        (
            {"title": "Mine"},
            {"description": "Theirs"},
            {"title": "Mine", "description": "Theirs"},
            ("description",),
            (),
        ),
        # Two changes of a field are a conflict, unless they agree.
        (
            {"title": "Mine", "description": "Same"},
            {"title": "Theirs", "description": "Same"},
            {"title": "Mine", "description": "Same"},
            (),
            ("title",),
        ),
        # Changes of sets are united.
        (
            {"category_ids": (2, 3), "tags": "y,z"},
            {"category_ids": (1, 2, 4), "tags": "x, y, w"},
            {"category_ids": (2, 4, 3), "tags": "y, w, z"},
            ("category_ids", "tags"),
            (),
        ),
        # Unless they break a rule together.
        (
            {"category_ids": (1,), "tags": LONG_TAGS},
            {"category_ids": (2,), "tags": LONG_TAGS.replace("m", "t")},
            {"category_ids": (1,), "tags": LONG_TAGS},
            (),
            ("category_ids", "tags"),
        ),
    ],
)
def test_two_changes_become_one(
    mine: dict[str, Any],
    theirs: dict[str, Any],
    expected: dict[str, Any],
    kept: tuple[str, ...],
    conflicts: tuple[str, ...],
) -> None:
    result = merged(BASE, replace(BASE, **mine), replace(BASE, **theirs))
    assert EditableMetadata(**result.values) == replace(BASE, **expected)
    assert (result.kept, result.conflicts) == (kept, conflicts)


def test_text_that_a_form_sent_back_is_unchanged() -> None:
    # Browsers make CR LF of line ends, and leave them out of a field of one line.
    stored = replace(BASE, title="Two\nlines", description="a\r\nb\rc")
    from_form = replace(stored, title="Twolines", description="a\nb\nc")
    assert merged(from_form, from_form, stored).values == asdict(stored)
    assert merged(from_form, replace(from_form, title="Mine"), stored).conflicts == ()


METADATA = st.builds(
    EditableMetadata,
    title=st.sampled_from("abc"),
    description=st.sampled_from("abc"),
    category_ids=st.sets(st.integers(1, 3), min_size=1).map(lambda them: tuple(sorted(them))),
    tags=st.sets(st.sampled_from("xyz")).map(lambda them: ", ".join(sorted(them))),
)


@given(base=METADATA, mine=METADATA, theirs=METADATA)
def test_order_of_two_editors_does_not_matter(
    base: EditableMetadata, mine: EditableMetadata, theirs: EditableMetadata
) -> None:
    assert merged(base, mine, base) == Merged(values=asdict(mine), kept=(), conflicts=())
    first = merged(base, mine, theirs)
    second = merged(base, theirs, mine)
    assert first.conflicts == second.conflicts
    for name in {"title", "description"} - set(first.conflicts):
        assert first.values[name] == second.values[name]
    if "category_ids" not in first.conflicts:
        assert set(first.values["category_ids"]) == set(second.values["category_ids"])
    assert set(split_tags(first.values["tags"])) == set(split_tags(second.values["tags"]))


A, B, C = (f"https://{name}.example" for name in "abc")


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "expected"),
    [
        ([A], [A, B], [A, C], [A, C, B]),
        ([A, B], [B], [A, B, C], [B, C]),
        # An empty list stands for the portal's setting, which neither editor may have chosen.
        ([A, B], [A], [B], None),
        ([A], [A, B], [], None),
    ],
)
def test_sites_that_either_added_or_took_away_count(
    base: Sequence[str], mine: Sequence[str], theirs: Sequence[str], expected: Sequence[str] | None
) -> None:
    sides = {"base": base, "mine": mine, "theirs": theirs}
    fields = {
        side: mergeable("public", sites, (), signed_in_only=False, has_public_page=False)
        for side, sites in sides.items()
    }
    result = merge(ACCESS_FIELDS, **fields)
    assert result.conflicts == (() if expected else ("embed_origins",))
    assert result.values["embed_origins"] == tuple(expected or mine)
