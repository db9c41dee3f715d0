"""Reads two ascending streams side by side, as a merge sort does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

from tortoise.connection import get_connection

Left = TypeVar("Left")
Right = TypeVar("Right")
Value = TypeVar("Value")

PAGE = 1000


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


async def rows_by_key(
    query: str, values: Sequence[object], *, first: str
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The rows of a query by their column `key`; it takes the values, the last key and a limit."""
    last, is_more = first, True
    while is_more:
        rows = await get_connection("default").execute_query_dict(query, [*values, last, PAGE])
        for row in rows:
            yield row["key"], row
        is_more = len(rows) == PAGE
        last = rows[-1]["key"] if rows else last


async def _ascending(
    stream: AsyncIterator[tuple[str, Value]],
) -> AsyncIterator[tuple[str, Value]]:
    previous = ""
    async for key, value in stream:
        if key <= previous:
            raise OutOfOrder(f"{key} comes after {previous}")
        previous = key
        yield key, value
