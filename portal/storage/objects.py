"""Keys of the bucket, parts of uploads, and S3's responses as values. No I/O.

Uploads are `videos/<id>.<extension>`; output is below `hls/`. S3 limits an upload to 10,000 parts,
each but the last of at least 5 MiB, and 5 TiB in all.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from uuid import UUID

UPLOAD_FOLDER = "videos/"
OUTPUT_FOLDER = "hls/"
# Pattern of the keys that `upload_key` returns.
UPLOAD_KEY = re.compile(rf"{UPLOAD_FOLDER}[0-9a-f]{{32}}\.[a-z0-9]{{1,255}}")
# Most keys that S3 lists or deletes in one request.
LIST_LIMIT = 1000
MIB = 1024**2
MAX_FILE_BYTES = 5 * 1024**4
MAX_PARTS = 10_000
SMALLEST_PART_BYTES = 16 * MIB
# Files up to this size have parts of the smallest size, whatever their exact size.
MAX_UNKNOWN_BYTES = MAX_PARTS * SMALLEST_PART_BYTES - 1


def upload_key(upload_id: UUID, extension: str) -> str:
    """Return the storage key of a raw file: `videos/<unique id>.<extension>`."""
    return f"{UPLOAD_FOLDER}{upload_id.hex}.{extension}"


def output_prefix(video_id: UUID | str, attempt: int) -> str:
    """Return the prefix of one attempt's output. Published output is never overwritten."""
    return f"{output_root(video_id)}{attempt}/"


def output_root(video_id: UUID | str) -> str:
    """Return the prefix of all output of a video."""
    return f"{OUTPUT_FOLDER}{video_id}/"


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """Properties of an object. Times are the server's, in whole seconds.

    `etag` is empty if storage computes none, as the embedded server; `films.sources` then
    identifies the object by other means. `content_encoding` is the header that the uploader sent.
    """

    size_bytes: int
    etag: str
    modified_at: datetime
    answered_at: datetime = field(compare=False)
    content_encoding: str = ""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Object in a listing. `etag` is empty if storage computes none."""

    key: str
    size_bytes: int
    etag: str


@dataclass(frozen=True, slots=True)
class StoredPart:
    """Part of an open multipart upload. `etag` keeps the quotes that storage sends."""

    number: int
    size_bytes: int
    etag: str


def read_info(answer: Mapping[str, Any]) -> ObjectInfo:
    """Read a response to HeadObject or GetObject, with or without a range."""
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


def read_entry(entry: Mapping[str, Any]) -> StoredObject:
    """Read an object in a response to ListObjectsV2."""
    return StoredObject(entry["Key"], entry["Size"], entry.get("ETag", "").strip('"'))


def part_size_bytes(file_bytes: int) -> int:
    """Return the size of each part but the last: the fewest MiB that the limits allow."""
    return max(SMALLEST_PART_BYTES, -(-file_bytes // (MAX_PARTS * MIB)) * MIB)


def part_count(file_bytes: int) -> int:
    """Return the number of a file's parts, which are numbered from 1."""
    return -(-file_bytes // part_size_bytes(file_bytes))


def size_of_part(number: int, file_bytes: int) -> int:
    """Return the size of the part with this number."""
    full_size = part_size_bytes(file_bytes)
    return min(full_size, file_bytes - (number - 1) * full_size)


def whole_parts(stored: Iterable[StoredPart], file_bytes: int) -> list[StoredPart]:
    """Return the stored parts with a valid number and the right size."""
    count = part_count(file_bytes)
    return [
        part
        for part in stored
        if 1 <= part.number <= count and part.size_bytes == size_of_part(part.number, file_bytes)
    ]


def missing_parts(stored: Iterable[StoredPart], file_bytes: int) -> list[int]:
    """Return the numbers of the parts that are not stored with the right size."""
    whole = {part.number for part in whole_parts(stored, file_bytes)}
    return [number for number in range(1, part_count(file_bytes) + 1) if number not in whole]
