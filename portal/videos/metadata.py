"""What is said of a video: the values that editors submit, and their rules. Pure.

Text is stored as submitted. A rule returns what is wrong with a value and how to mend it, or None.
"""

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass, replace

from portal.text import is_blank, split_tags

MAX_FILE_NAME_LENGTH = 255
MAX_TITLE_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 5_000
MAX_TAGS_LENGTH = 500
# There are far fewer; but ids may be repeated, and every page of a video names all of them.
MAX_CATEGORIES = 64
# The extension may become part of the key, and a part of a key may be too long for a file system.
FILE_NAME = re.compile(r"(?s).+\.[A-Za-z0-9]{1,64}")
# The same, and what else `file_name_fault` wants, as JSON Schema writes it (ECMA-262).
FILE_NAME_PATTERN = r"^[^/\\\u0000-\u001f\u007f-\u009f]+\.[A-Za-z0-9]{1,64}$"
# The extensions of the types that are taken, the usual one first.
EXTENSIONS = {"video/mp4": ("mp4", "m4v"), "video/quicktime": ("mov", "qt")}


class TagsTooLong(Exception):
    """A video has no room for these tags beside its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditableMetadata:
    """What editors say of a video, and may change."""

    title: str
    description: str
    category_ids: tuple[int, ...]
    tags: str

    def digest(self) -> str:
        """A short value that is the same for the same metadata; stored with edited videos."""
        values = [self.title, self.description, self.category_ids, self.tags]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A new video: its metadata, the name its file had, and the storage key it was uploaded to."""

    metadata: EditableMetadata
    file_name: str
    key: str


def with_tags(said: EditableMetadata, tags: str) -> EditableMetadata:
    """With those of these tags that it lacks, whatever their case. Raises `TagsTooLong`."""
    known = {tag.casefold() for tag in split_tags(said.tags)}
    news = {tag.casefold(): tag for tag in split_tags(tags)}
    added = [tag for folded, tag in news.items() if folded not in known]
    joined = ", ".join([*split_tags(said.tags), *added]) if added else said.tags
    if added and len(joined) > MAX_TAGS_LENGTH:
        raise TagsTooLong
    return replace(said, tags=joined)


def without_tags(said: EditableMetadata, tags: str) -> EditableMetadata:
    """Without any of these tags, whatever their case."""
    unwanted = {tag.casefold() for tag in split_tags(tags)}
    own = split_tags(said.tags)
    kept = [tag for tag in own if tag.casefold() not in unwanted]
    return said if len(kept) == len(own) else replace(said, tags=", ".join(kept))


def text_fault(text: str) -> str | None:
    """Whether the database can store a text."""
    if "\0" in text:
        return "Remove the NUL character."
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "Remove the lone surrogate; send valid Unicode."
    return None


def title_fault(title: str) -> str | None:
    """Whether something of a title can be seen."""
    return "Give a title; it may not be blank." if is_blank(title) else None


def file_name_fault(name: str) -> str | None:
    """Whether this is the name of a file, with an extension."""
    if any(char in "/\\" or unicodedata.category(char) == "Cc" for char in name):
        return "Give the file's name alone: no path separators or control characters."
    if not FILE_NAME.fullmatch(name):
        return "End the file name with an extension like .mp4."
    return None


def key_extension(file_name: str, content_type: str) -> str:
    """The extension of the storage key: the file's own if it is a video's, else its type's."""
    extension = file_name.rpartition(".")[2].lower()
    is_video = any(extension in usual for usual in EXTENSIONS.values())
    return extension if is_video else EXTENSIONS[content_type][0]
