"""What lies in the bucket: its keys, parts of uploads, and what S3 answers, as values. No I/O.

Uploads are `videos/<id>.<extension>`, output is below `hls/`. Limits of S3: 10,000 parts, each but
the last of at least 5 MiB, 5 TiB in all.
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
# As `upload_key` makes them.
UPLOAD_KEY = re.compile(rf"{UPLOAD_FOLDER}[0-9a-f]{{32}}\.[a-z0-9]{{1,255}}")
# As many as S3 lists, or removes, in one request.
LIST_LIMIT = 1000
MIB = 1024**2
MAX_FILE_BYTES = 5 * 1024**4
MAX_PARTS = 10_000
SMALLEST_PART_BYTES = 16 * MIB
# Up to here all files have parts of one size, for which theirs need not be known.
MAX_UNKNOWN_BYTES = MAX_PARTS * SMALLEST_PART_BYTES - 1


def upload_key(upload_id: UUID, extension: str) -> str:
    """Storage key of a raw file: `videos/<unique id>.<extension>`."""
    return f"{UPLOAD_FOLDER}{upload_id.hex}.{extension}"


def upload_id(key: str) -> str:
    """The unique id inside the storage key of a raw file."""
    return key.removeprefix(UPLOAD_FOLDER).partition(".")[0]


def output_prefix(video_id: UUID | str, attempt: int) -> str:
    """Where one transcoding attempt writes; published output is never written again."""
    return f"{output_root(video_id)}{attempt}/"


def output_root(video_id: UUID | str) -> str:
    """Where everything that was made of a video lies."""
    return f"{OUTPUT_FOLDER}{video_id}/"


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


def read_entry(entry: Mapping[str, Any]) -> StoredObject:
    """An object of an answer to ListObjectsV2."""
    etag = entry.get("ETag", "").strip('"')
    return StoredObject(entry["Key"], entry["Size"], etag, entry["LastModified"])


def part_size_bytes(file_bytes: int) -> int:
    """Size of every part but the last: a whole number of MiB, as small as the limits allow."""
    return max(SMALLEST_PART_BYTES, -(-file_bytes // (MAX_PARTS * MIB)) * MIB)


def part_count(file_bytes: int) -> int:
    """How many parts a file has; they are numbered from 1."""
    return -(-file_bytes // part_size_bytes(file_bytes))


def size_of_part(number: int, file_bytes: int) -> int:
    """Size of the part with this number."""
    each = part_size_bytes(file_bytes)
    return min(each, file_bytes - (number - 1) * each)


def whole_parts(stored: Iterable[StoredPart], file_bytes: int) -> list[StoredPart]:
    """The stored parts that the file has and that have their right size."""
    count = part_count(file_bytes)
    return [
        part
        for part in stored
        if 1 <= part.number <= count and part.size_bytes == size_of_part(part.number, file_bytes)
    ]


def missing_parts(stored: Iterable[StoredPart], file_bytes: int) -> list[int]:
    """The numbers of parts that are not stored, or not with their right size."""
    there = {part.number for part in whole_parts(stored, file_bytes)}
    return [number for number in range(1, part_count(file_bytes) + 1) if number not in there]
