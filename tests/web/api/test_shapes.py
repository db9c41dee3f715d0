"""The rules of request bodies, apart from HTTP: what is taken, what is refused, and where."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from portal.web.api.json_bodies import field_errors
from portal.web.api.videos import (
    CreatedVideo,
    CreateVideoRequest,
    PresignRequest,
    RetrievedVideo,
)

CATEGORIES = {1, 2, 32767}
UNKNOWN_CATEGORY = "There is no category with this id. See GET /api/categories."
OUT_OF_RANGE = "Give an integer from 1 to 32767."
VIDEO = {
    "title": "t",
    "description": "",
    "categoryIds": [1],
    "tags": "",
    "fileName": "a.mp4",
    "key": "videos/0.mp4",
}


def refusals(shape: type[BaseModel], body: Any) -> dict[str, str]:
    """The message for each pointer at fault; nothing when the body is taken."""
    try:
        shape.model_validate(body, context=CATEGORIES, by_alias=True, by_name=False)
    except ValidationError as exc:
        return {fault.pointer: fault.message for fault in field_errors(exc)}
    return {}


def video(**changes: Any) -> dict[str, str]:
    return refusals(CreateVideoRequest, {**VIDEO, **changes})


def file_name(name: Any) -> dict[str, str]:
    return refusals(PresignRequest, {"fileName": name, "contentType": "video/mp4"})


@pytest.mark.parametrize(
    "name",
    [
        *("a.mp4", "a.MP4", "a b.mOv", "a.b.c.mp4", "..mp4", " .mp4"),
        *("видео 🎬.mp4", "\u200fشريط\u202e.mp4", "x" * 251 + ".mp4", "😀" * 251 + ".mp4"),
    ],
)
def test_file_name_with_an_extension_is_taken(name: str) -> None:
    assert file_name(name) == {}


@pytest.mark.parametrize("name", ["noextension", ".mp4", "a.", "a.mp4.", "a.m p", "a.mp4 ", "."])
def test_file_name_without_an_extension_is_refused(name: str) -> None:
    assert file_name(name) == {"/fileName": "End the file name with an extension like .mp4."}


@pytest.mark.parametrize(
    "name",
    [
        *("a/b.mp4", "a\\b.mp4", "../a.mp4", "a\nb.mp4", "a.mp4\n"),
        *("a\tb.mp4", "a\x7f.mp4", "a\x85.mp4"),
    ],
)
def test_file_name_with_a_separator_or_control_character_is_refused(name: str) -> None:
    words = "Give the file's name alone: no path separators or control characters."
    assert file_name(name) == {"/fileName": words}


def test_file_name_is_limited_to_255_characters() -> None:
    assert file_name("x" * 252 + ".mp4") == {"/fileName": "Shorten this to at most 255 characters."}
    assert file_name("") == {"/fileName": "This may not be empty."}


@pytest.mark.parametrize(
    "content_type", ["video/webm", "VIDEO/MP4", "video/mp4; a=b", "", None, 1, ["video/mp4"], {}]
)
def test_other_content_types_are_refused(content_type: Any) -> None:
    body = {"fileName": "a.mp4", "contentType": content_type}
    assert refusals(PresignRequest, body) == {
        "/contentType": "Choose 'video/mp4' or 'video/quicktime'."
    }


@pytest.mark.parametrize("number", [1.0, 1.5, True, False, "1", None, [], {}])
def test_category_id_must_be_a_json_integer(number: Any) -> None:
    assert video(categoryIds=[1, number]) == {"/categoryIds/1": "Give an integer."}


@pytest.mark.parametrize(
    "number", [0, -1, 32768, 2**31, 2**63, pytest.param(10**5000, id="of-5000-digits")]
)
def test_category_id_outside_16_bits_is_refused(number: int) -> None:
    assert video(categoryIds=[number]) == {"/categoryIds/0": OUT_OF_RANGE}


def test_every_unknown_category_is_named() -> None:
    assert video(categoryIds=[3, 1, 4]) == {
        "/categoryIds/0": UNKNOWN_CATEGORY,
        "/categoryIds/2": UNKNOWN_CATEGORY,
    }


@pytest.mark.parametrize("ids", [None, 1, "1", {}, True])
def test_category_ids_must_be_an_array(ids: Any) -> None:
    assert video(categoryIds=ids) == {"/categoryIds": "Give an array."}


def test_at_least_one_category_is_required() -> None:
    assert video(categoryIds=[]) == {"/categoryIds": "This may not be empty."}


def test_at_most_64_categories_are_taken() -> None:
    assert video(categoryIds=[1] * 64) == {}
    assert video(categoryIds=[1] * 65) == {"/categoryIds": "Give at most 64."}


@pytest.mark.parametrize(
    ("member", "limit"), [("title", 200), ("description", 5_000), ("tags", 500)]
)
def test_text_length_is_counted_in_characters(member: str, limit: int) -> None:
    assert video(**{member: "😀" * limit}) == {}
    words = f"Shorten this to at most {limit:,} characters."
    assert video(**{member: "😀" * limit + "x"}) == {f"/{member}": words}


@pytest.mark.parametrize("member", ["title", "description", "tags", "fileName", "key"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\0.mp4", "Remove the NUL character."),
        ("a\ud800.mp4", "Remove the lone surrogate; send valid Unicode."),
        (f"a{chr(0xDFFF)}.mp4", "Remove the lone surrogate; send valid Unicode."),
    ],
)
def test_text_that_cannot_be_stored_is_refused(member: str, text: str, words: str) -> None:
    assert video(**{member: text}) == {f"/{member}": words}


@pytest.mark.parametrize("member", ["title", "description", "tags", "fileName", "key"])
@pytest.mark.parametrize("value", [None, 1, True, [], {}])
def test_text_must_be_a_string(member: str, value: Any) -> None:
    assert video(**{member: value}) == {f"/{member}": "Give a string."}


@pytest.mark.parametrize("title", [" ", "\n\t", "\u00a0\u2003"])
def test_blank_title_is_refused(title: str) -> None:
    assert video(title=title) == {"/title": "Give a title; it may not be blank."}


def test_empty_title_is_refused_and_other_texts_may_be_empty() -> None:
    assert video(title="", description="", tags="") == {"/title": "This may not be empty."}


def test_all_missing_members_are_named() -> None:
    assert refusals(CreateVideoRequest, {}) == {
        f"/{member}": "This member is required." for member in VIDEO
    }


def test_retrieval_record_differs_by_the_playback_address_alone() -> None:
    created, retrieved = CreatedVideo.model_fields, RetrievedVideo.model_fields
    assert set(retrieved) - set(created) == {"playback_url"}
    assert set(created) <= set(retrieved)
    assert not issubclass(RetrievedVideo, CreatedVideo)
