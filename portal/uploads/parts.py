"""The parts of an upload: how large they are, and which of them are stored. Pure.

Limits of S3: 10,000 parts, each but the last of at least 5 MiB, 5 TiB in all.
"""

from collections.abc import Iterable

from portal.storage.objects import StoredPart

MIB = 1024**2
MAX_FILE_BYTES = 5 * 1024**4
MAX_PARTS = 10_000
SMALLEST_PART_BYTES = 16 * MIB
# Up to here all files have parts of one size, for which theirs need not be known.
MAX_UNKNOWN_BYTES = MAX_PARTS * SMALLEST_PART_BYTES - 1


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
