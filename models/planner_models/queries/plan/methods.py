"""Methods by which a switch answers a query, and the lists of entries that each one installs ahead.

Rules of all queries on a switch are in one table, beside those of its program, or each query has a table of
its own (`pipeline`). In one table every combination of entries that meet is a rule, as when modules are
composed in parallel (Foster et al. 2013, III).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from planner_models.flowtables.problem.fields import Layout
from planner_models.flowtables.problem.values import Cube
from planner_models.queries.problem.predicates import Entries, approximate
from planner_models.queries.problem.problem import Monitoring, Query
from planner_models.queries.problem.schema import ANY, EXACT

AHEAD: Final = "ahead"
UNFOLD: Final = "unfold"
MICROFLOWS: Final = "microflows"
CONTROLLER: Final = "controller"
METHODS: Final = (AHEAD, UNFOLD, MICROFLOWS, CONTROLLER)
"""Rules ahead; rules with wildcards or of whole headers as packets arrive; packets to the controller."""
MOST_AHEAD: Final = 4_096
"""Rules of one query that are installed ahead for the values of its groups."""


class Listed(NamedTuple):
    """Entries of a query on a switch, the first of which that holds a header decides; the last holds all.

    value, mask  of the entry
    counts       whether packets of the entry are counted, or go to the controller
    """

    value: int
    mask: int
    counts: bool


class Joint(NamedTuple):
    """An entry of one table of several lists.

    action  of the program
    uses    positions of the lists, the program aside, that count its packets or divert them
    """

    value: int
    mask: int
    action: str
    uses: tuple[int, ...]


def find_matchable(layout: Layout, matching: str, mask: int) -> int:
    """Return the bits of a mask that rules of a switch can match."""
    if matching == ANY:
        return mask
    matchable = 0
    for field in layout.fields:
        shift, full = layout.shift[field.name], (1 << field.bits) - 1
        field_mask = (mask >> shift) & full
        if field_mask == full:
            matchable |= full << shift
        elif matching != EXACT and field.prefix:
            ones = 0  # the ones before the first zero
            while ones < field.bits and field_mask >> (field.bits - 1 - ones) & 1:
                ones += 1
            matchable |= (full ^ (full >> ones)) << shift
    return matchable


def can_match(layout: Layout, matching: str, mask: int) -> bool:
    """Return whether rules of a switch can match a mask."""
    return find_matchable(layout, matching, mask) == mask


def find_region(problem: Monitoring, query: Query, switch: int) -> Entries:
    """Return the entries of the packets that a query looks at on a switch, as far as its rules can tell."""
    matching = problem.matching[switch]
    return approximate(query.entries, lambda mask: find_matchable(problem.layout, matching, mask))


def find_specialized(problem: Monitoring, query: Query, switch: int) -> int:
    """Return the mask of the fields by which rules for arriving packets tell whether they are in a query.

    0 where the rules ahead tell it: the switch can match the predicate.
    """
    masks = [entry.mask for entry in query.entries]
    if all(can_match(problem.layout, problem.matching[switch], mask) for mask in masks):
        return 0
    used = 0
    for mask in masks:
        used |= mask
    layout = problem.layout
    return layout.full_mask(name for name in layout.by_name if used & layout.full_mask([name]))


def list_ahead(problem: Monitoring, query: Query, switch: int) -> list[Listed] | None:
    """Return the entries that count a query ahead, one of each group; None where there is no such list.

    There is none for packets, for predicates or groups that the switch cannot match, and for more than 4,096
    groups.
    """
    matching, layout = problem.matching[switch], problem.layout
    masks = [query.group, *(entry.mask | query.group for entry in query.entries if entry.holds)]
    masks += [entry.mask for entry in query.entries]
    if query.returns_packets or not all(can_match(layout, matching, mask) for mask in masks):
        return None
    size = sum(1 << (query.group & ~entry.mask).bit_count() for entry in query.entries if entry.holds)
    if size > MOST_AHEAD:
        return None
    entries: list[Listed] = []
    for value, mask, holds in query.entries:
        if holds:
            entries += [
                Listed(value | group, mask | query.group, True) for group in _values(query.group & ~mask)
            ]
        else:
            entries.append(Listed(value, mask, False))
    return entries if not entries[-1].mask else [*entries, Listed(0, 0, False)]


def _values(mask: int) -> Iterator[int]:
    """Yield all values within a mask."""
    value = 0
    while True:
        yield value
        value = (value - mask) & mask
        if not value:
            return


def list_region(entries: Entries) -> list[Listed]:
    """Return the entries of a region as those of a list."""
    return [Listed(*entry) for entry in entries]


def join_lists(problem: Monitoring, lists: Sequence[Sequence[Listed]], *, limit: int) -> list[Joint] | None:
    """Return the entries of one table of the program and some lists, in the order of priority.

    The last one, of all packets, is not there where the program has none for them and no list uses it.

    limit    most entries
    returns  None for more than `limit` entries
    """
    joined = [Joint(*entry, ()) for entry in problem.program]
    if not joined or joined[-1].mask:
        joined.append(Joint(0, 0, problem.other_action, ()))
    for position, entries in enumerate(lists):
        further = _join_list(joined, entries, position, limit + 1)
        if further is None:
            return None
        joined = further
    last = joined[-1]
    if not last.mask and last.action == problem.other_action and not last.uses:
        joined.pop()
    return joined if len(joined) <= limit else None


def _join_list(
    joined: Sequence[Joint], entries: Sequence[Listed], position: int, limit: int
) -> list[Joint] | None:
    """Return the entries of a table with a further list, the first of those with the same cube.

    returns  None for more than `limit` entries
    """
    distinct: dict[Cube, Joint] = {}
    for (value, mask, action, uses), (other_value, other_mask, counts) in product(joined, entries):
        if (value ^ other_value) & mask & other_mask == 0:
            cube = (value | other_value, mask | other_mask)
            if cube not in distinct:
                distinct[cube] = Joint(*cube, action, (*uses, position) if counts else uses)
                if len(distinct) > limit:
                    return None
    return list(distinct.values())


def count_own(entries: Sequence[Listed]) -> int:
    """Return the entries of a list in a table of its own, without a last one that does nothing."""
    return len(entries) - (not entries[-1].counts)
