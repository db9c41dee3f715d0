"""Two editors' changes of the same metadata become one, or a conflict; nobody's are lost."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from portal.text import split_tags
from portal.videos.merging import merge
from portal.videos.metadata import EditableMetadata

BASE = EditableMetadata(title="Base", description="a\nb", category_ids=(1, 2), tags="x, y")


def test_field_that_one_of_two_changed_is_that_ones() -> None:
    mine, theirs = replace(BASE, title="Mine"), replace(BASE, description="Theirs")
    merged = merge(base=BASE, mine=mine, theirs=theirs)
    assert merged.metadata == replace(BASE, title="Mine", description="Theirs")
    assert (merged.kept, merged.conflicts) == (("description",), ())


def test_field_that_both_changed_is_a_conflict_unless_they_agree() -> None:
    theirs = replace(BASE, title="Theirs", description="Same")
    merged = merge(base=BASE, mine=replace(BASE, title="Mine", description="Same"), theirs=theirs)
    assert merged.metadata == replace(BASE, title="Mine", description="Same")
    assert (merged.kept, merged.conflicts) == ((), ("title",))


def test_text_that_a_form_sent_back_is_unchanged() -> None:
    # Browsers make CR LF of line ends, and leave them out of a field of one line.
    stored = replace(BASE, title="Two\nlines", description="a\r\nb\rc")
    sent = replace(stored, title="Twolines", description="a\nb\nc")
    assert merge(base=sent, mine=sent, theirs=stored).metadata == stored
    assert merge(base=sent, mine=replace(sent, title="Mine"), theirs=stored).conflicts == ()


def test_tags_and_categories_that_either_added_or_took_away_count() -> None:
    mine = replace(BASE, category_ids=(2, 3), tags="y,z")
    theirs = replace(BASE, category_ids=(1, 2, 4), tags="x, y, w")
    merged = merge(base=BASE, mine=mine, theirs=theirs)
    assert merged.metadata == replace(BASE, category_ids=(2, 4, 3), tags="y, w, z")
    assert (merged.kept, merged.conflicts) == (("category_ids", "tags"), ())


def test_sets_that_together_break_a_rule_are_a_conflict() -> None:
    mine = replace(BASE, category_ids=(1,), tags="x, y, " + "m" * 400)
    theirs = replace(BASE, category_ids=(2,), tags="x, y, " + "t" * 400)
    merged = merge(base=BASE, mine=mine, theirs=theirs)
    assert merged.conflicts == ("category_ids", "tags")
    assert merged.metadata == mine


def test_tags_are_taken_away_entirely_without_a_conflict() -> None:
    merged = merge(base=BASE, mine=replace(BASE, tags="x"), theirs=replace(BASE, tags="y"))
    assert (merged.metadata.tags, merged.conflicts) == ("", ())


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
    first = merge(base=base, mine=mine, theirs=theirs)
    second = merge(base=base, mine=theirs, theirs=mine)
    assert first.conflicts == second.conflicts
    for name in {"title", "description"} - set(first.conflicts):
        assert getattr(first.metadata, name) == getattr(second.metadata, name)
    if "category_ids" not in first.conflicts:
        assert set(first.metadata.category_ids) == set(second.metadata.category_ids)
    assert set(split_tags(first.metadata.tags)) == set(split_tags(second.metadata.tags))


@given(base=METADATA, mine=METADATA)
def test_alone_an_editor_gets_what_was_sent(base: EditableMetadata, mine: EditableMetadata) -> None:
    merged = merge(base=base, mine=mine, theirs=base)
    assert (merged.metadata, merged.kept, merged.conflicts) == (mine, (), ())
