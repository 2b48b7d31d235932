"""The formal model of circuits to several racks in Pyomo: every configuration, and every division of data."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from planner.errors import InputError
from planner_models.circuits.problem.problem import Circuits

if TYPE_CHECKING:
    import pyomo.environ as pyo

MOST_CONFIGURATIONS: Final = 5_000
Group = frozenset[int]


def formulation(problem: Circuits) -> pyo.ConcreteModel:
    """Return the model over every configuration C: a rack that each rack receives from, or none.

    A rack sends to at most `circuit_targets` racks; a circuit R to two or more carries multicasts alone, at
    the rate u_R of its slowest link. A copy of multicast k is one of its targets' receiving a bit of it.
    Families F are groups G of targets without a common one: y_kF bits are sent once to each group.

    maximize    sum of X_ij + Y_ij + copies V_ij                    minimize T  (without a window)
    subject to  X_ij <= u_ij * sum of t_sC over s and C with i -> j as a circuit to one rack
                sum of f_kGR over k and G <= u_R * sum of t_sC over s and C with R
                sum of y_kF over F with G <= sum of f_kGR over R that reach G
                sum of y_kF over F <= b_k
                V_ij = sum of y_kF over k from i and F with a group to j
                X_ij + Y_ij + V_ij <= D_ij                              = D_ij
                sum of t_sC + night * z_sC <= W for each switch s       <= T
                shortest * z_sC <= t_sC <= longest * z_sC,  z_sC in {0, 1}
                row and column sums of Y at most packet rate * W        * T

    Bits and microseconds. InputError for more than 5,000 configurations.
    """
    import pyomo.environ as pyo  # only where the formal model is wanted

    configurations = list_all_configurations(problem)
    multicasts, bits, u = problem.multicast_demands, problem.bits, problem.circuit_mbps
    pairs = [(i, j) for i in range(len(bits)) for j in range(len(bits)) if bits[i, j] > 0]
    shared = sorted({(i, R) for C in configurations for i, R in C.items() if len(R) > 1}, key=str)
    families = [
        (k, F)
        for k, targets in enumerate(multicasts.targets)
        for F in divide(sorted(targets))
        if F and max(len(G) for G in F) <= problem.circuit_targets
    ]
    groups = sorted({(k, G) for k, F in families for G in F}, key=str)
    flows = [
        (g, r)
        for g, (k, G) in enumerate(groups)
        for r, (i, R) in enumerate(shared)
        if i == multicasts.source[k] and G <= R
    ]
    m = pyo.ConcreteModel("schedule with circuits to several racks")
    m.S, m.C = pyo.Set(initialize=range(problem.switches)), pyo.Set(initialize=range(len(configurations)))
    m.IJ, m.F = pyo.Set(initialize=pairs, dimen=2), pyo.Set(initialize=range(len(families)))
    m.GR = pyo.Set(initialize=flows, dimen=2)
    for name, index in (("X", (m.IJ,)), ("Y", (m.IJ,)), ("y", (m.F,)), ("f", (m.GR,)), ("t", (m.S, m.C))):
        setattr(m, name, pyo.Var(*index, domain=pyo.NonNegativeReals))
    m.z = pyo.Var(m.S, m.C, domain=pyo.Binary)
    end: Any = problem.window_us
    if end is None:
        m.T = end = pyo.Var(domain=pyo.NonNegativeReals)

    def up_us(i: int, R: Group) -> Any:
        return sum(m.t[s, c] for s in m.S for c in m.C if configurations[c].get(i) == R)

    def copies(i: int, j: int) -> Any:
        chunks = enumerate(families)
        return sum(m.y[n] for n, (k, F) in chunks if multicasts.source[k] == i and any(j in G for G in F))

    _add_rows(m, problem, pairs, end, up_us, copies)
    m.several = pyo.Constraint(
        range(len(shared)),
        rule=lambda m, r: _at_most(
            [m.f[g, q] for g, q in flows if q == r],
            float(min(u[shared[r][0], j] for j in shared[r][1])) * up_us(*shared[r]),
        ),
    )
    m.groups = pyo.Constraint(
        range(len(groups)),
        rule=lambda m, g: (
            sum(m.y[n] for n, (k, F) in enumerate(families) if k == groups[g][0] and groups[g][1] in F)
            <= sum(m.f[h, r] for h, r in flows if h == g)
        ),
    )
    m.once = pyo.Constraint(
        range(len(multicasts)),
        rule=lambda m, k: _at_most(
            [m.y[n] for n, (other, _) in enumerate(families) if other == k], float(multicasts.bits[k])
        ),
    )
    if problem.window_us is None:
        m.value = pyo.Objective(expr=m.T, sense=pyo.minimize)
    else:
        served = sum(m.X[pair] + m.Y[pair] + copies(*pair) for pair in pairs)
        m.value = pyo.Objective(expr=served, sense=pyo.maximize)
    return m


def _add_rows(
    m: pyo.ConcreteModel, problem: Circuits, pairs: list[tuple[int, int]], end: Any, up_us: Any, copies: Any
) -> None:
    """Add the rows of circuits to one rack, of demand, of time and of the packet switch."""
    import pyomo.environ as pyo

    night, shortest, p, u = (
        problem.night_us,
        problem.shortest_day_us,
        problem.packet_mbps,
        problem.circuit_mbps,
    )
    longest = float((problem.bits / u).sum())

    def serves(m: pyo.ConcreteModel, i: int, j: int) -> Any:
        served, demand = m.X[i, j] + m.Y[i, j] + copies(i, j), float(problem.bits[i, j])
        return served == demand if problem.window_us is None else served <= demand

    def packets(m: pyo.ConcreteModel, rack: int, way: int) -> Any:
        return _at_most([m.Y[pair] for pair in pairs if pair[way] == rack], float(p[rack]) * end)

    m.single = pyo.Constraint(
        m.IJ, rule=lambda m, i, j: m.X[i, j] <= float(u[i, j]) * up_us(i, frozenset({j}))
    )
    m.demand = pyo.Constraint(m.IJ, rule=serves)
    m.week = pyo.Constraint(m.S, rule=lambda m, s: sum(m.t[s, c] + night * m.z[s, c] for c in m.C) <= end)
    m.longest = pyo.Constraint(m.S, m.C, rule=lambda m, s, c: m.t[s, c] <= longest * m.z[s, c])
    m.shortest = pyo.Constraint(m.S, m.C, rule=lambda m, s, c: m.t[s, c] >= shortest * m.z[s, c])
    m.packet = pyo.Constraint(range(len(p)), range(2), rule=packets)


def _at_most(terms: list[Any], limit: Any) -> Any:
    """Return the row by which terms are at most a limit in all; none without terms."""
    import pyomo.environ as pyo

    return sum(terms) <= limit if terms else pyo.Constraint.Skip


def list_all_configurations(problem: Circuits) -> list[dict[int, Group]]:
    """Return the targets of each sender of all configurations, but those that no demand has a use for."""
    n, copies = len(problem.racks), problem.multicast_demands.copy_bits
    choices = [[None, *(i for i in range(n) if problem.bits[i, j] > 0)] for j in range(n)]
    listed = []
    for number, sources in enumerate(itertools.product(*choices)):
        if number > MOST_CONFIGURATIONS:
            raise InputError(
                f"formulation: has more than {MOST_CONFIGURATIONS:,} configurations of circuits to "
                "several racks"
            )
        circuits = {
            i: frozenset(j for j in range(n) if sources[j] == i) for i in set(sources) if i is not None
        }
        if all(
            len(R) == 1 or (len(R) <= problem.circuit_targets and all(copies[i, j] > 0 for j in R))
            for i, R in circuits.items()
        ):
            listed.append(circuits)
    return [circuits for circuits in listed if circuits]


def divide(targets: list[int]) -> list[tuple[Group, ...]]:
    """Return all families of groups of some targets without a common one, the empty one included."""
    if not targets:
        return [()]
    first, families = targets[0], divide(targets[1:])
    joined = [
        (*family[:index], family[index] | {first}, *family[index + 1 :])
        for family in families
        for index in range(len(family))
    ]
    return [*families, *((frozenset({first}), *family) for family in families), *joined]
