"""Two editors' changes of the same metadata become one, or a conflict; nobody's are lost."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.text import split_tags
from portal.videos.editing import WAYS
from portal.videos.merging import merge
from portal.videos.metadata import EditableMetadata
from portal.videos.visibility import WAYS as ACCESS_WAYS
from portal.videos.visibility import mergeable

BASE = EditableMetadata(title="Base", description="a\nb", category_ids=(1, 2), tags="x, y")


class Both(NamedTuple):
    """What came of two changes of metadata."""

    metadata: EditableMetadata
    kept: tuple[str, ...]
    conflicts: tuple[str, ...]


def both(*, base: EditableMetadata, mine: EditableMetadata, theirs: EditableMetadata) -> Both:
    merged = merge(WAYS, base=asdict(base), mine=asdict(mine), theirs=asdict(theirs))
    return Both(EditableMetadata(**merged.values), merged.kept, merged.conflicts)


def test_field_that_one_of_two_changed_is_that_ones() -> None:
    mine, theirs = replace(BASE, title="Mine"), replace(BASE, description="Theirs")
    merged = both(base=BASE, mine=mine, theirs=theirs)
    assert merged.metadata == replace(BASE, title="Mine", description="Theirs")
    assert (merged.kept, merged.conflicts) == (("description",), ())


def test_field_that_both_changed_is_a_conflict_unless_they_agree() -> None:
    theirs = replace(BASE, title="Theirs", description="Same")
    merged = both(base=BASE, mine=replace(BASE, title="Mine", description="Same"), theirs=theirs)
    assert merged.metadata == replace(BASE, title="Mine", description="Same")
    assert (merged.kept, merged.conflicts) == ((), ("title",))


def test_text_that_a_form_sent_back_is_unchanged() -> None:
    # Browsers make CR LF of line ends, and leave them out of a field of one line.
    stored = replace(BASE, title="Two\nlines", description="a\r\nb\rc")
    sent = replace(stored, title="Twolines", description="a\nb\nc")
    assert both(base=sent, mine=sent, theirs=stored).metadata == stored
    assert both(base=sent, mine=replace(sent, title="Mine"), theirs=stored).conflicts == ()


def test_tags_and_categories_that_either_added_or_took_away_count() -> None:
    mine = replace(BASE, category_ids=(2, 3), tags="y,z")
    theirs = replace(BASE, category_ids=(1, 2, 4), tags="x, y, w")
    merged = both(base=BASE, mine=mine, theirs=theirs)
    assert merged.metadata == replace(BASE, category_ids=(2, 4, 3), tags="y, w, z")
    assert (merged.kept, merged.conflicts) == (("category_ids", "tags"), ())


def test_sets_that_together_break_a_rule_are_a_conflict() -> None:
    mine = replace(BASE, category_ids=(1,), tags="x, y, " + "m" * 400)
    theirs = replace(BASE, category_ids=(2,), tags="x, y, " + "t" * 400)
    merged = both(base=BASE, mine=mine, theirs=theirs)
    assert merged.conflicts == ("category_ids", "tags")
    assert merged.metadata == mine


METADATA = st.builds(
    EditableMetadata,
    title=st.sampled_from(["a", "b", "c"]),
    description=st.sampled_from(["a", "b", "c"]),
    category_ids=st.sets(st.integers(1, 3), min_size=1).map(lambda them: tuple(sorted(them))),
    tags=st.sets(st.sampled_from("xyz")).map(lambda them: ", ".join(sorted(them))),
)


@given(base=METADATA, mine=METADATA, theirs=METADATA)
def test_order_of_two_editors_does_not_matter(
    base: EditableMetadata, mine: EditableMetadata, theirs: EditableMetadata
) -> None:
    first = both(base=base, mine=mine, theirs=theirs)
    second = both(base=base, mine=theirs, theirs=mine)
    assert first.conflicts == second.conflicts
    for name in {"title", "description"} - set(first.conflicts):
        assert getattr(first.metadata, name) == getattr(second.metadata, name)
    if "category_ids" not in first.conflicts:
        assert set(first.metadata.category_ids) == set(second.metadata.category_ids)
    assert set(split_tags(first.metadata.tags)) == set(split_tags(second.metadata.tags))


@given(base=METADATA, mine=METADATA)
def test_alone_an_editor_gets_what_was_sent(base: EditableMetadata, mine: EditableMetadata) -> None:
    merged = both(base=base, mine=mine, theirs=base)
    assert (merged.metadata, merged.kept, merged.conflicts) == (mine, (), ())


A, B, C = (f"https://{name}.example" for name in "abc")


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "merged"),
    [
        ([A], [A, B], [A, C], [A, C, B]),
        ([A, B], [B], [A, B, C], [B, C]),
        ([], [A], [B], [B, A]),
        ([A, B], [B, A], [A, C], [A, C]),
        # None at all means the portal's own setting, which neither of them may have meant.
        ([A, B], [A], [B], None),
        ([A], [], [A, B], None),
        ([A], [A, B], [], None),
    ],
)
def test_sites_that_either_added_or_took_away_count(
    base: Sequence[str], mine: Sequence[str], theirs: Sequence[str], merged: Sequence[str] | None
) -> None:
    said = {"base": base, "mine": mine, "theirs": theirs}
    fields = {who: mergeable("public", sites, signed_in_only=False) for who, sites in said.items()}
    found = merge(ACCESS_WAYS, **fields)
    assert found.conflicts == (() if merged else ("embed_origins",))
    assert found.values["embed_origins"] == tuple(merged or mine)
