"""Reads two ascending streams side by side, as a merge sort does."""

from collections.abc import AsyncIterator
from typing import TypeVar

Left = TypeVar("Left")
Right = TypeVar("Right")
Value = TypeVar("Value")


class OutOfOrder(Exception):
    """Keys do not ascend, so two streams can't be compared."""


async def merged(
    left: AsyncIterator[tuple[str, Left]], right: AsyncIterator[tuple[str, Right]]
) -> AsyncIterator[tuple[str, Left | None, Right | None]]:
    """Every key of either stream, with what each has for it. Raises `OutOfOrder`."""
    lefts, rights = _ascending(left), _ascending(right)
    one, other = await anext(lefts, None), await anext(rights, None)
    while one is not None or other is not None:
        key = min(each[0] for each in (one, other) if each is not None)
        mine = one[1] if one is not None and one[0] == key else None
        theirs = other[1] if other is not None and other[0] == key else None
        yield key, mine, theirs
        if one is not None and one[0] == key:
            one = await anext(lefts, None)
        if other is not None and other[0] == key:
            other = await anext(rights, None)


async def _ascending(
    stream: AsyncIterator[tuple[str, Value]],
) -> AsyncIterator[tuple[str, Value]]:
    previous = ""
    async for key, value in stream:
        if key <= previous:
            raise OutOfOrder(f"{key} comes after {previous}")
        previous = key
        yield key, value
