"""How a file is divided into the parts of a multipart upload; no I/O.

Limits of S3: 10,000 parts, each but the last of at least 5 MiB, 5 TiB in all.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from portal.storage.objects import StoredPart

MIB = 1024**2
MAX_FILE_BYTES = 5 * 1024**4
MAX_PARTS = 10_000
SMALLEST_PART_BYTES = 16 * MIB
MAX_RANGES = 10


def part_size_bytes(file_bytes: int) -> int:
    """Size of every part but the last: a whole number of MiB, as small as the limits allow."""
    return max(SMALLEST_PART_BYTES, _ceiling(_ceiling(file_bytes, MAX_PARTS), MIB) * MIB)


def part_count(file_bytes: int) -> int:
    """How many parts a file has; they are numbered from 1."""
    return _ceiling(file_bytes, part_size_bytes(file_bytes))


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


def format_numbers(numbers: Sequence[int]) -> str:
    """Ascending numbers as ranges: "1, 4-6 and more"."""
    ranges = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        ranges.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    words = ", ".join(ranges[:MAX_RANGES])
    return words if len(ranges) <= MAX_RANGES else f"{words} and more"


def _ceiling(value: int, divisor: int) -> int:
    return -(-value // divisor)
