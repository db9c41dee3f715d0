"""What S3 answers about objects and multipart uploads, as values; no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

# As many as S3 lists, or removes, in one request.
LIST_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What storage tells about an object; times are the server's own, in whole seconds.

    `etag` is empty where storage computes none, as the embedded server; `processing.sources` has
    what tells its objects apart. `content_encoding` is the header that the uploader sent.
    """

    size_bytes: int
    etag: str
    modified_at: datetime
    answered_at: datetime = field(compare=False)
    content_encoding: str = ""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a listing. `etag` is empty where storage computes none."""

    key: str
    size_bytes: int
    etag: str
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Page:
    """Objects, and folders by their whole prefix; `next_page` is empty on the last one."""

    objects: tuple[StoredObject, ...]
    folders: tuple[str, ...]
    next_page: str


@dataclass(frozen=True, slots=True)
class OpenMultipart:
    """A multipart upload that was neither completed nor aborted."""

    key: str
    multipart_id: str
    begun_at: datetime


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One part of an open multipart upload. `etag` is as storage gave it, quotes included."""

    number: int
    size_bytes: int
    etag: str


def read_info(answer: Mapping[str, Any]) -> ObjectInfo:
    """An answer to HeadObject, or to GetObject, of a range or the whole."""
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    # "bytes 0-65535/200000" (RFC 9110, 14.4).
    whole_bytes = answer.get("ContentRange", "").rpartition("/")[2]
    return ObjectInfo(
        size_bytes=int(whole_bytes) if whole_bytes else answer["ContentLength"],
        etag=answer.get("ETag", "").strip('"'),
        modified_at=answer["LastModified"],
        answered_at=parsedate_to_datetime(date) if date else answer["LastModified"],
        content_encoding=answer.get("ContentEncoding", ""),
    )


def read_page(answer: Mapping[str, Any]) -> Page:
    """A page of an answer to ListObjectsV2."""
    return Page(
        objects=tuple(
            StoredObject(
                entry["Key"], entry["Size"], entry.get("ETag", "").strip('"'), entry["LastModified"]
            )
            for entry in answer.get("Contents", ())
        ),
        folders=tuple(entry["Prefix"] for entry in answer.get("CommonPrefixes", ())),
        next_page=answer.get("NextContinuationToken", "") if answer.get("IsTruncated") else "",
    )
