"""What holds of the portal's pure modules for whatever they are given."""

import html
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf
from typing import Any
from urllib.parse import unquote

from hostile_texts import ALL
from hypothesis import assume, given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers, MultiDict

from portal.config import Config, ConfigError
from portal.errors import CrossSiteRequest, FieldError, InvalidRequest
from portal.storage.objects import StoredPart
from portal.storage.presigning import _attachment
from portal.uploads.service import (
    MAX_FILE_BYTES,
    MAX_PARTS,
    MIB,
    format_numbers,
    missing_parts,
    part_count,
    part_size_bytes,
    size_of_part,
    whole_parts,
)
from portal.web.api.json_bodies import validated
from portal.web.api.metadata import VideoMetadata
from portal.web.api.uploads import StartUploadRequest
from portal.web.api.videos import CreatedVideo, CreateVideoRequest, PresignRequest
from portal.web.pages.editing_views import typed_metadata
from portal.web.pages.formatting import size
from portal.web.pages.links import linked
from portal.web.server.origins import require_same_origin

texts = st.one_of(
    st.text(max_size=300), st.sampled_from(ALL), st.lists(st.sampled_from(ALL)).map("".join)
)
storable = texts.filter(lambda text: "\0" not in text)
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
    markup = str(linked(text))
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


@given(storable.filter(str.strip), storable, storable)
def test_a_record_says_what_was_submitted(title: str, description: str, tags: str) -> None:
    assume(not any(map(_is_surrogate, title + description + tags)))
    record = CreatedVideo(
        **{"id": "1", "title": title, "description": description, "tags": tags, "status": "ready"},
        **{"category_ids": [1], "file_name": "a.mp4", "storage_key": "k", "transcode_job_id": "1"},
        **{"size_bytes": 1, "created_at": datetime.now(UTC), "updated_at": datetime.now(UTC)},
    )
    read = json.loads(record.model_dump_json())
    assert (read["title"], read["description"], read["tags"]) == (title, description, tags)


def _is_surrogate(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff"


@given(st.lists(st.tuples(st.sampled_from(["title", "tags", "categoryIds", "x"]), texts)))
def test_any_form_can_be_read(fields: list[tuple[str, str]]) -> None:
    body = typed_metadata(MultiDict(fields))
    assert {fault.pointer.split("/")[1] for fault in faults_of(VideoMetadata, body)} <= set(body)


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


@given(st.sets(st.integers(1, MAX_PARTS), max_size=60))
def test_numbers_are_told_as_ranges(numbers: set[int]) -> None:
    words = format_numbers(sorted(numbers))
    if not words.endswith("more"):
        told: set[int] = set()
        for part in filter(None, words.split(", ")):
            low, _, high = part.partition("-")
            told |= set(range(int(low), int(high or low) + 1))
        assert told == numbers


@given(st.integers(0, 10**16), st.integers(0, 10**16))
def test_a_larger_file_never_reads_as_a_smaller_one(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert _bytes(size(low).words) <= _bytes(size(high).words) < inf


def _bytes(words: str) -> float:
    number, unit = words.split()
    return float(number) * 1000 ** ("bytes", "kB", "MB", "GB", "TB").index(unit)


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


@given(
    st.dictionaries(
        st.sampled_from(["Sec-Fetch-Site", "Origin", "Referer"]),
        st.sampled_from(["same-origin", "none", "null", "https://a.example", "//", "http://["])
        | st.text(max_size=30).filter(lambda it: not {"\r", "\n"} & set(it)),
    )
)
def test_only_a_proof_of_the_own_site_is_one(said: dict[str, str]) -> None:
    try:
        require_same_origin(Headers(said), hosts=frozenset({"a.example"}))
    except CrossSiteRequest:
        return
    site, origin = said.get("Sec-Fetch-Site"), said.get("Origin")
    if site is not None:
        assert site in {"same-origin", "none"}
    elif origin is not None:
        assert origin.partition("//")[2].split("/")[0].split("?")[0].split("#")[0].lower() == (
            "a.example"
        )


NAMES = (
    *("DATABASE_URL", "S3_ENDPOINT_URL", "PUBLIC_URL", "PLAYBACK_BASE_URL", "PORT", "HOST"),
    *("WEB_WORKERS", "UPLOAD_URL_TTL_S", "DOWNLOADS", "LOG_LEVEL", "LOG_FORMAT", "ALLOWED_HOSTS"),
    *("MAX_SOURCE_BYTES", "WORK_DIR"),
)
SECRET = "correct-horse-battery"


@given(
    st.dictionaries(
        st.sampled_from(NAMES),
        st.text(max_size=40)
        | st.sampled_from(
            [
                *("http://[", "https://x:99999", "0", "-1", "9" * 20, "on", "²", "\u0661"),
                *("postgresql://u@h/d", "postgresql://[", "a,b", "*", "::", "0.0.0.1", "//x"),
            ]
        ),
    )
)
def test_settings_are_read_or_their_faults_are_named(environ: dict[str, str]) -> None:
    secret = {"DATABASE_URL": f"postgresql://u:{SECRET}@h/d", **environ}
    found = settings_of(secret)
    if isinstance(found, ConfigError):
        assert found.faults
        assert all(any(name in fault for name in NAMES) for fault in found.faults)
        assert SECRET not in str(found)
    else:
        assert 1 <= found.port <= 65535
        assert found.public_url.startswith(("http://", "https://"))


def settings_of(environ: dict[str, str]) -> Config | ConfigError:
    try:
        return Config.from_env(environ)
    except ConfigError as refusal:
        return refusal
