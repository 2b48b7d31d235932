"""The formal model of system `flowtables` in Pyomo: masks, their places in the search, and entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from planner.arrays import Bools
from planner.errors import InputError
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.plan.classification import find_valid
from planner_models.flowtables.plan.metrics import find_punts
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

if TYPE_CHECKING:
    import pyomo.environ as pyo

MOST_BITS: Final = 6
MOST_HEADERS: Final = 16


def formulation(problem: FlowTables, *, most_masks: int = 3) -> pyo.ConcreteModel:
    """Return the model of entries, masks and their order, over all masks of the bits that rules match.

    In each place s of the search, at most one mask is used: z_ms. A header h of w_h connections is served by
    mask m in place s, x_hms, from entry v = h & m, y_mv.

    minimize    sum_h w_h sum_ms p s x_hms + u sum_mv y_mv + p sum_mvs q_mvs
    subject to  sum_ms x_hms = 1                  over masks m that are valid for h
                x_hms <= z_ms
                sum_s x_hms <= y_m,h&m
                sum_m z_ms <= 1                   places are used from the first on
                q_mvs >= y_mv + sum_m z_ms - 1    a miss looks up in every mask

    p is the time of a lookup, u that of an upcall, us; the objective is of a connection in the mean. A mask
    is valid where entries settle the action of all headers that agree on it, as in `classification.is_valid`.

    raises  InputError for more than 6 bits that rules match, or 16 headers, and where not all may be cached
    """
    import pyomo.environ as pyo  # only needed for the formal model

    headers = group_headers(problem)
    masks = list_masks(problem)
    count = len(headers.words)
    if count > MOST_HEADERS:
        raise InputError(f"formulation: there are {count} headers, must be at most {MOST_HEADERS}")
    if problem.most_entries < count:
        raise InputError("formulation: the cache may not hold an entry for each header, must be able to")
    entries = _Entries.of(problem, headers.words, masks)
    m = pyo.ConcreteModel("entries of a cache")
    _add_variables(m, entries, masks=len(masks), headers=count, places=most_masks)
    _add_search(m, entries)
    probe, upcall = problem.probe_us, problem.cost("upcall_us")
    m.goal = pyo.Objective(
        expr=(
            sum(float(headers.weight[h]) * probe * s * m.x[i, h, s] for i, h in m.MH for s in m.S)
            + upcall * sum(m.y[y] for y in m.Y)
            + probe * sum(m.q[y, s] for y in m.Y for s in m.S)
            + upcall * float(find_punts(problem).sum())
        )
        / len(problem.flows),
        sense=pyo.minimize,
    )
    return m


class _Entries(NamedTuple):
    """Entries that serve headers.

    valid   (masks, headers) whether a mask is valid for a header
    number  of the entry of each valid pair of a mask and a header
    total   different entries
    """

    valid: Bools
    number: dict[tuple[int, int], int]
    total: int

    @classmethod
    def of(cls, problem: FlowTables, words: Words, masks: Words) -> _Entries:
        """Return the entries of valid masks."""
        valid = np.asarray(find_valid(words, masks, problem.entries))
        entry = {
            (m, h): (m, tuple((words[h] & masks[m]).tolist()))
            for m in range(len(masks))
            for h in range(len(words))
            if valid[m, h]
        }
        number = {item: index for index, item in enumerate(sorted(set(entry.values())))}
        return cls(valid, {pair: number[item] for pair, item in entry.items()}, len(number))


def _add_variables(m: pyo.ConcreteModel, entries: _Entries, *, masks: int, headers: int, places: int) -> None:
    """Add the sets, and the variables of places, entries, services and lookups of misses."""
    import pyomo.environ as pyo

    m.S, m.M = pyo.RangeSet(1, places), pyo.RangeSet(0, masks - 1)
    m.H, m.Y = pyo.RangeSet(0, headers - 1), pyo.RangeSet(0, entries.total - 1)
    m.MH = pyo.Set(initialize=sorted(entries.number), dimen=2)
    m.x = pyo.Var(m.MH, m.S, domain=pyo.NonNegativeReals)
    m.z, m.y = pyo.Var(m.M, m.S, domain=pyo.Binary), pyo.Var(m.Y, domain=pyo.Binary)
    m.q = pyo.Var(m.Y, m.S, domain=pyo.NonNegativeReals)


def _add_search(m: pyo.ConcreteModel, entries: _Entries) -> None:
    """Add the service of each header by an entry, and the order of the search over masks."""
    import pyomo.environ as pyo

    valid, number = entries.valid, entries.number

    def is_used(m: pyo.ConcreteModel, s: int) -> Any:
        return sum(m.z[i, s] for i in m.M)

    def served(m: pyo.ConcreteModel, h: int) -> Any:
        return sum(m.x[i, h, s] for i in m.M if valid[i, h] for s in m.S) == 1

    def looked_up(m: pyo.ConcreteModel, y: int, s: int) -> Any:
        return m.q[y, s] >= m.y[y] + is_used(m, s) - 1

    def ordered(m: pyo.ConcreteModel, s: int) -> Any:
        return is_used(m, s) <= (1 if s == 1 else is_used(m, s - 1))

    m.served = pyo.Constraint(m.H, rule=served)
    m.used = pyo.Constraint(m.MH, m.S, rule=lambda m, i, h, s: m.x[i, h, s] <= m.z[i, s])
    m.installed = pyo.Constraint(
        m.MH, rule=lambda m, i, h: sum(m.x[i, h, s] for s in m.S) <= m.y[number[i, h]]
    )
    m.ordered = pyo.Constraint(m.S, rule=ordered)
    m.looked_up = pyo.Constraint(m.Y, m.S, rule=looked_up)


def list_masks(problem: FlowTables) -> Words:
    """Return all masks of the bits that rules match, (m, words); raises InputError for more than 6 bits."""
    used = problem.layout.to_numbers(problem.used_mask[None, :])[0]
    bits = [1 << bit for bit in range(used.bit_length()) if used >> bit & 1]
    if len(bits) > MOST_BITS:
        raise InputError(f"formulation: rules match {len(bits)} bits, must be at most {MOST_BITS}")
    numbers = [
        sum(bit for index, bit in enumerate(bits) if subset >> index & 1) for subset in range(1 << len(bits))
    ]
    return problem.layout.to_words(numbers)
