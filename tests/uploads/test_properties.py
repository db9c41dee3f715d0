"""What holds of the portal's pure modules for whatever they are given."""

import html
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from hostile_texts import ALL
from hypothesis import assume, given
from hypothesis import strategies as st

from portal.errors import FieldError, InvalidRequest
from portal.storage.objects import StoredPart
from portal.storage.presigning import _attachment
from portal.uploads.parts import (
    MAX_FILE_BYTES,
    MAX_PARTS,
    MIB,
    missing_parts,
    part_count,
    part_size_bytes,
    size_of_part,
    whole_parts,
)
from portal.web.api.json_bodies import validated
from portal.web.api.metadata import VideoMetadata
from portal.web.api.uploads import StartUploadRequest
from portal.web.api.videos import CreateVideoRequest, PresignRequest
from portal.web.pages.formatting import linkify

texts = st.one_of(
    st.text(max_size=300), st.sampled_from(ALL), st.lists(st.sampled_from(ALL)).map("".join)
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
MEMBERS = (
    *("title", "description", "categoryIds", "tags", "fileName", "key"),
    *("contentType", "sizeBytes"),
)
file_sizes = st.integers(1, MAX_FILE_BYTES)


@given(texts)
def test_linking_adds_nothing_but_links_to_web_addresses(text: str) -> None:
    markup = str(linkify(text))
    tags = re.findall(r"<[^>]*>", markup)
    for tag in tags:
        assert tag == "</a>" or re.fullmatch(
            r'<a href="https?://[^"<>]+" rel="nofollow noopener ugc">', tag, re.IGNORECASE
        )
    assert tags[1::2] == ["</a>"] * (len(tags) // 2)
    assert html.unescape(re.sub(r"<[^>]*>", "", markup)) == text


@given(
    st.sampled_from([PresignRequest, CreateVideoRequest, VideoMetadata, StartUploadRequest]),
    st.one_of(anything, st.fixed_dictionaries({}, optional=dict.fromkeys(MEMBERS, anything))),
)
def test_any_body_is_taken_or_its_faults_are_named(shape: Any, body: Any) -> None:
    for fault in faults_of(shape, body):
        assert fault.message.endswith(".")
        assert fault.pointer == "" or fault.pointer.startswith("/")


def faults_of(shape: Any, body: Any) -> Sequence[FieldError]:
    """Those of a body; none if it is taken."""
    try:
        validated(shape, body)
    except InvalidRequest as refusal:
        return refusal.errors
    return ()


def _is_surrogate(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff"


@given(file_sizes)
def test_parts_make_up_the_file(size_bytes: int) -> None:
    each, count = part_size_bytes(size_bytes), part_count(size_bytes)
    assert each % MIB == 0
    assert 1 <= count <= MAX_PARTS
    assert each * (count - 1) + size_of_part(count, size_bytes) == size_bytes
    assert 1 <= size_of_part(count, size_bytes) <= each
    assert all(size_of_part(number, size_bytes) == each for number in (1, count - 1)[: count - 1])


@given(
    st.integers(1, 200 * 16 * MIB),
    st.lists(st.tuples(st.integers(-5, 300), st.integers(0, 17 * MIB) | st.just(16 * MIB))),
)
def test_every_part_is_stored_or_missing(size_bytes: int, found: list[tuple[int, int]]) -> None:
    stored = [StoredPart(number, size, "e") for number, size in dict(found).items()]
    whole = {part.number for part in whole_parts(stored, size_bytes)}
    missing = missing_parts(stored, size_bytes)
    assert sorted(whole | set(missing)) == list(range(1, part_count(size_bytes) + 1))
    assert not whole & set(missing)


@given(texts)
def test_a_file_name_cannot_leave_its_header(name: str) -> None:
    assume(not any(map(_is_surrogate, name)))
    header = _attachment(name)
    assert header.isascii()
    assert header.isprintable()
    found = re.fullmatch(r"attachment; filename=\"([^\"\\%]*)\"; filename\*=UTF-8''(\S*)", header)
    assert found is not None
    assert ";" not in found[2]
    assert set(unquote(found[2])) <= set(name) | {"\n"}
