"""Merging what two editors made of the same metadata, field by field. Pure.

`base` is what both began from, `theirs` what is recorded by now. A field that only one of them
changed is that one's. Categories and tags are sets: what either added or took away counts. A field
that both changed in ways that don't go together is a conflict, which a person has to settle.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from portal.text import split_tags
from portal.videos.metadata import MAX_TAGS_LENGTH, EditableMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What came of both changes; of the fields in `conflicts` it is mine.

    In the fields that are `kept` someone else's change is part of it, which I have not seen.
    """

    metadata: EditableMetadata
    kept: tuple[str, ...]
    conflicts: tuple[str, ...]


def merge(*, base: EditableMetadata, mine: EditableMetadata, theirs: EditableMetadata) -> Merged:
    """Both changes of the same metadata in one."""
    said = {it.name: [getattr(of, it.name) for of in (base, mine, theirs)] for it in fields(base)}
    both: dict[str, Any] = {name: _merged(name, *values) for name, values in said.items()}
    changed = [name for name, values in said.items() if _is_theirs_new(name, *values)]
    conflicts = tuple(name for name in changed if both[name] is None)
    return Merged(
        metadata=replace(mine, **{name: both[name] for name in both if name not in conflicts}),
        kept=tuple(name for name in changed if name not in conflicts),
        conflicts=conflicts,
    )


def _is_theirs_new(name: str, base: Any, mine: Any, theirs: Any) -> bool:
    """Whether someone else said something that I neither began from nor said as well."""
    known = (_compared(name, base), _compared(name, mine))
    return _compared(name, theirs) not in known


def _merged(name: str, base: Any, mine: Any, theirs: Any) -> Any | None:
    """The value that both agree on; None for none."""
    if _compared(name, mine) == _compared(name, base):
        return theirs
    if not _is_theirs_new(name, base, mine, theirs):
        return mine
    if name == "category_ids":
        return tuple(_united(base, mine, theirs)) or None
    if name == "tags":
        tags = ", ".join(_united(*map(split_tags, (base, mine, theirs))))
        return tags if len(tags) <= MAX_TAGS_LENGTH else None
    return None


def _compared(name: str, value: Any) -> Hashable:
    """A value as it is compared: categories have no order, and forms change ends of lines."""
    if name == "category_ids":
        return frozenset(value)
    lines = str(value).replace("\r\n", "\n").replace("\r", "\n")
    return lines if name == "description" else lines.replace("\n", "")


def _united(base: Iterable[Any], mine: Iterable[Any], theirs: Iterable[Any]) -> list[Any]:
    """Theirs without what I took away, then what I added; each once."""
    former, own = list(base), list(mine)
    kept = [it for it in theirs if it in own or it not in former]
    return list(dict.fromkeys([*kept, *(it for it in own if it not in former)]))
