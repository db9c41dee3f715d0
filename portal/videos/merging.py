"""Merging what two editors made of the same fields, field by field. Pure.

`base` is what both began from, `theirs` what is recorded by now. A field that only one of them
changed is that one's. In sets, such as tags, what either added or took away counts. A field that
both changed in ways that don't go together is a conflict, which a person has to settle.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]


def _never(base: Any, mine: Any, theirs: Any) -> Any | None:
    """Two changes that don't go together."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRule:
    """How a field is merged.

    `compared` gives what counts of a value, `united` the value that two changes make together; None
    if they make none.
    """

    compared: Callable[[Any], Hashable]
    united: Callable[[Any, Any, Any], Any | None] = _never


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What came of both changes; of the fields in `conflicts` it is mine.

    In the fields that are `kept` someone else's change is part of it, which I have not seen.
    """

    values: dict[str, Any]
    kept: tuple[str, ...]
    conflicts: tuple[str, ...]


def merge(rules: Mapping[str, MergeRule], *, base: Values, mine: Values, theirs: Values) -> Merged:
    """Both changes of the fields that there are rules for, in one."""
    said = {name: (base[name], mine[name], theirs[name]) for name in rules}
    both = {name: _merged(rules[name], *values) for name, values in said.items()}
    changed = [name for name, values in said.items() if _is_theirs_new(rules[name], *values)]
    conflicts = tuple(name for name in changed if both[name] is None)
    return Merged(
        values={name: mine[name] if name in conflicts else both[name] for name in rules},
        kept=tuple(name for name in changed if name not in conflicts),
        conflicts=conflicts,
    )


def united(base: Iterable[Any], mine: Iterable[Any], theirs: Iterable[Any]) -> list[Any]:
    """Theirs without what I took away, then what I added; each once."""
    former, own = list(base), list(mine)
    kept = [it for it in theirs if it in own or it not in former]
    return list(dict.fromkeys([*kept, *(it for it in own if it not in former)]))


def _is_theirs_new(rule: MergeRule, base: Any, mine: Any, theirs: Any) -> bool:
    """Whether someone else said something that I neither began from nor said as well."""
    return rule.compared(theirs) not in (rule.compared(base), rule.compared(mine))


def _merged(rule: MergeRule, base: Any, mine: Any, theirs: Any) -> Any | None:
    """The value that both agree on; None for none."""
    if rule.compared(mine) == rule.compared(base):
        return theirs
    if not _is_theirs_new(rule, base, mine, theirs):
        return mine
    return rule.united(base, mine, theirs)
