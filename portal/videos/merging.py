"""Three-way merge of two editors' changes of the same fields. Pure.

`base` has the values that both editors began with, `theirs` the recorded values. A field that one
editor changed takes that change. Changes of sets, such as tags, are united. A field that both
changed in incompatible ways is a conflict, which a person has to resolve.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRule:
    """Rule for merging a field.

    `compared` maps a value to its significant part. `united` returns both changes in one value;
    None for a conflict. Without it, two changes are always a conflict.
    """

    compared: Callable[[Any], Hashable]
    united: Callable[[Any, Any, Any], Any | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Merge result; for fields in `conflicts`, the caller's value.

    Fields in `kept` contain changes of the other editor that the caller has not seen.
    """

    values: dict[str, Any]
    kept: tuple[str, ...]
    conflicts: tuple[str, ...]


def merge(rules: Mapping[str, MergeRule], *, base: Values, mine: Values, theirs: Values) -> Merged:
    """Merge the fields that have rules."""
    sides = {name: (base[name], mine[name], theirs[name]) for name in rules}
    results = {name: _merged_value(rules[name], *values) for name, values in sides.items()}
    changed = [name for name, values in sides.items() if _is_theirs_new(rules[name], *values)]
    conflicts = tuple(name for name in changed if results[name] is None)
    return Merged(
        values={name: mine[name] if name in conflicts else results[name] for name in rules},
        kept=tuple(name for name in changed if name not in conflicts),
        conflicts=conflicts,
    )


def united(base: Iterable[Any], mine: Iterable[Any], theirs: Iterable[Any]) -> list[Any]:
    """Return their items without those that I removed, then those that I added; each once."""
    former = list(base)
    own = list(mine)
    remaining = [item for item in theirs if item in own or item not in former]
    added = [item for item in own if item not in former]
    return list(dict.fromkeys([*remaining, *added]))


def _is_theirs_new(rule: MergeRule, base: Any, mine: Any, theirs: Any) -> bool:
    """Return whether the other editor's value differs from the base and from mine."""
    return rule.compared(theirs) not in (rule.compared(base), rule.compared(mine))


def _merged_value(rule: MergeRule, base: Any, mine: Any, theirs: Any) -> Any | None:
    """Return the merged value; None for a conflict."""
    if rule.compared(mine) == rule.compared(base):
        return theirs
    if not _is_theirs_new(rule, base, mine, theirs):
        return mine
    return rule.united(base, mine, theirs) if rule.united else None
