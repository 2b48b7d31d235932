"""The formal model of system `consolidation` in Pyomo: machines in the nodes of single hosts, with losses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from planner_models.consolidation.designs.one_host import list_ways
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.rows import rows_of
from planner_models.consolidation.problem.shapes import Placing

if TYPE_CHECKING:
    import pyomo.environ as pyo

Candidate = tuple[int, int]
"""Row of the supply, and number of the host within it."""


def list_candidates(problem: Consolidation, hosts: int) -> list[Candidate]:
    """Return up to some hosts of each supply, and no more than there are machines."""
    machines = int(problem.count.sum())
    return [
        (row, number)
        for row, supply in enumerate(problem.supplies)
        for number in range(int(min(supply.count, hosts, machines)))
    ]


def formulation(problem: Consolidation, *, hosts: int = 6) -> pyo.ConcreteModel:
    """Return the least price of hosts for all machines, after any loss too, as an integer program.

    minimize    sum_j price_j y_j + sum_m own_m r_m
    subject to  sum_{p,j not in L} z_pj + r_m >= d_m       for machines m with ways p, and lost hosts L
                sum_p a_pn z_pj <= capacity_n y_j          for each node n, and resource, of host j
                sum_p z_pj <= 2 d_m x_j, sum_p z_pj <= 2 d_k (1 - x_j)   for shapes m, k that are apart
                y_j >= y_j+1                               for hosts that are alike
                sum_{j of type h} y_j <= most_h

    z are machines and slots together; r machines without a host. Members of a group in a zone or rack, and
    groups that are together or apart in a zone or rack, are not modelled.

    hosts  of each supply
    """
    import pyomo.environ as pyo  # only needed for the formal model

    candidates = list_candidates(problem, hosts)
    used = np.flatnonzero(problem.count > 0).tolist()
    ways = {
        (j, p): (int(shape), placing)
        for j, (supply, _) in enumerate(candidates)
        for p, (shape, placing) in enumerate(_fixed_ways(problem, problem.supplies[supply].host_type, used))
        if problem.is_supplied[int(shape), supply]
    }
    m = pyo.ConcreteModel("consolidation")
    m.J = pyo.RangeSet(0, len(candidates) - 1)
    m.W = pyo.Set(initialize=list(ways), dimen=2)
    m.M = pyo.Set(initialize=used)
    m.y = pyo.Var(m.J, domain=pyo.Binary)
    m.z = pyo.Var(m.W, domain=pyo.NonNegativeIntegers)
    m.r = pyo.Var(m.M, domain=pyo.NonNegativeIntegers)
    rows = [(shape, lost) for shape in used for lost in _lost_sets(problem, candidates, shape)]
    m.R = pyo.RangeSet(0, len(rows) - 1)

    def is_covered(m: pyo.ConcreteModel, row: int) -> Any:
        shape, lost = rows[row]
        terms = [
            m.z[key] for key, (its_shape, _) in ways.items() if its_shape == shape and key[0] not in lost
        ]
        return sum(terms) + m.r[shape] >= int(problem.count[shape])

    m.covered = pyo.Constraint(m.R, rule=is_covered)
    _add_capacities(m, problem, candidates, ways)
    _add_supplies(m, problem, candidates)
    m.goal = pyo.Objective(
        expr=sum(
            float(problem.price[problem.supplies[supply].host_type]) * m.y[j]
            for j, (supply, _) in enumerate(candidates)
        )
        + sum(float(problem.own_price[shape]) * m.r[shape] for shape in used),
        sense=pyo.minimize,
    )
    return m


def _fixed_ways(problem: Consolidation, host_type: int, shapes: list[int]) -> list[tuple[int, Any]]:
    """Return the ways of machines with their reserved vCPUs."""
    ways = list_ways(problem, host_type, shapes)
    return [
        (int(shape), placing)
        for shape, placing in zip(ways.shape.tolist(), ways.placings, strict=True)
        if abs(sum(placing.vcpus) - problem.vcpus[shape]) <= 1e-9
    ]


def _lost_sets(problem: Consolidation, candidates: list[Candidate], shape: int) -> list[frozenset[int]]:
    """Return the sets of hosts that the machines of a shape survive the loss of, and the empty one."""
    from itertools import combinations

    result = {frozenset[int]()}
    if problem.survive is None:
        return list(result)
    for row in rows_of(problem.survive):
        if not problem.members(str(getattr(row, "group", "") or ""))[shape]:
            continue
        domains: dict[Any, set[int]] = {}
        for j, (supply, number) in enumerate(candidates):
            item = problem.supplies[supply]
            key = (supply, number) if row.domain == "host" else getattr(item, str(row.domain))
            domains.setdefault(key, set()).add(j)
        for lost in combinations(domains.values(), min(int(row.losses), len(domains))):
            result.add(frozenset().union(*lost))
    return sorted(result, key=sorted)


def _add_capacities(
    m: pyo.ConcreteModel, problem: Consolidation, candidates: list[Candidate], ways: dict[Any, Any]
) -> None:
    """Add the capacity of each node, and of each host, in each dimension."""
    import pyomo.environ as pyo

    m.capacity = pyo.ConstraintList()
    total = int(problem.count.sum()) * 2
    for j, (supply, _) in enumerate(candidates):
        shape = problem.host_shapes[problem.supplies[supply].host_type]
        here = [(m.z[key], placing) for key, (_, placing) in ways.items() if key[0] == j]
        for column, node in product(range(problem.dimensions), (*range(len(shape.node)), None)):
            limit = float(shape.whole[column] if node is None else shape.node[node, column])
            terms = list(_terms(here, column, node))
            if np.isfinite(limit) and terms:
                m.capacity.add(sum(terms) <= limit * m.y[j])
        _separate(m, problem, j, ways)
        if here:
            m.capacity.add(sum(variable for variable, _ in here) <= total * m.y[j])


def _separate(m: pyo.ConcreteModel, problem: Consolidation, j: int, ways: dict[Any, Any]) -> None:
    """Place machines of only one of two shapes in conflict on a host."""
    import pyomo.environ as pyo

    if not hasattr(m, "x"):
        pairs = np.argwhere(np.triu(problem.host_conflicts, 1)).tolist()
        m.x = pyo.Var(m.J, pyo.Set(initialize=[tuple(pair) for pair in pairs], dimen=2), domain=pyo.Binary)
    for first, second in np.argwhere(np.triu(problem.host_conflicts, 1)).tolist():
        for shape, is_here in ((first, m.x[j, first, second]), (second, 1 - m.x[j, first, second])):
            terms = [m.z[key] for key, (its_shape, _) in ways.items() if key[0] == j and its_shape == shape]
            m.capacity.add(sum(terms) <= 2 * int(problem.count[shape]) * is_here) if terms else None


def _terms(here: list[tuple[Any, Placing]], column: int, node: int | None) -> Iterator[Any]:
    """Yield the terms that machines take of a node, or of the whole host for None, in one dimension."""
    for variable, placing in here:
        amount = (placing.whole if node is None else placing.node[node])[column]
        if amount > 0:
            yield amount * variable


def _add_supplies(m: pyo.ConcreteModel, problem: Consolidation, candidates: list[Candidate]) -> None:
    """Add the order of hosts that are alike, and the hosts that can be had."""
    import pyomo.environ as pyo

    m.order = pyo.ConstraintList()
    for j, (supply, number) in enumerate(candidates):
        if number > 0:
            m.order.add(m.y[j] <= m.y[j - 1])
        assert candidates[j] == (supply, number)
    m.supply = pyo.ConstraintList()
    groups = [
        (problem.most, [problem.supplies[supply].host_type for supply, _ in candidates]),
        (
            problem.zone_most,
            [problem.zone_names.index(problem.supplies[supply].zone) for supply, _ in candidates],
        ),
    ]
    for limits, group in groups:
        for row, limit in enumerate(limits.tolist()):
            members = [m.y[j] for j, its_group in enumerate(group) if its_group == row]
            if np.isfinite(limit) and members:
                m.supply.add(sum(members) <= limit)
