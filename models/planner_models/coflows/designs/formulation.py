"""The formal model of system `coflows` in Pyomo: circuits in order on their ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner_models.coflows.problem.problem import CoflowsInTime

if TYPE_CHECKING:
    import pyomo.environ as pyo

MOST_CIRCUITS = 16
DEFAULT_PARTS = 1


def formulation(problem: CoflowsInTime, *, parts: int = DEFAULT_PARTS) -> pyo.ConcreteModel:
    """Return the ordering program of circuits, each flow over at most `parts` of them, on circuits alone.

    minimize    mean of C_c - r_c
    subject to  C_c >= s_a + l_a                        for circuits a of coflow c
                s_a >= r_c,  s_a >= setup
                sum of l_a over circuits a of flow f = time that f needs
                sum of w_ak over switches k = 1         w_ak: whether circuit a is on switch k
                y_ab + y_ba = 1                         y_ab: whether a is before b
                s_b >= s_a + l_a + setup (1 - g_ab) - M (1 - y_ab) - M (2 - w_ak - w_bk)
                                                        where a and b share a port, for each switch k
                g_ab <= y_ab,  g_ab <= 1 - |w_ak - w_bk|,  g_ab <= y_ca + y_bc
                                                        where a and b have the same ports, for each circuit c
                                                        of other ports that shares one: the circuit is kept

    Milliseconds. InputError for more than 16 circuits, and where no coflow can be complete.

    source  Manne 1960 (ordering of jobs on machines), with set-up times that a kept circuit saves
    """
    import pyomo.environ as pyo  # only where the formal model is wanted

    flows = [f for f in range(len(problem.flows)) if problem.can_complete[problem.coflow[f]]]
    if not flows:
        raise InputError("formulation: no coflow can be complete, one at least must be")
    if len(flows) * parts > MOST_CIRCUITS:
        raise InputError(
            f"formulation: {len(flows)} flows in {parts} parts are {len(flows) * parts} circuits, must be at "
            f"most {MOST_CIRCUITS}"
        )
    m = pyo.ConcreteModel("coflows on circuits")
    setup, k = problem.setup_ms, problem.switches
    need = {f: float(problem.bits[f] / problem.circuit_rate[f]) for f in flows}
    ends = {f: (int(problem.source[f]), int(problem.target[f])) for f in flows}
    coflow = {f: int(problem.coflow[f]) for f in flows}
    arrival = {c: float(problem.arrival_ms[c]) for c in set(coflow.values())}
    horizon = max(arrival.values()) + sum(need.values()) + (len(flows) * parts + 1) * setup
    circuits = [(f, q) for f in flows for q in range(parts)]
    m.A = pyo.Set(initialize=range(len(circuits)))
    m.K = pyo.Set(initialize=range(k))
    m.C = pyo.Set(initialize=sorted(arrival))
    of = {a: circuits[a][0] for a in m.A}
    shared = [
        (a, b)
        for a in m.A
        for b in m.A
        if a != b and (ends[of[a]][0] == ends[of[b]][0] or ends[of[a]][1] == ends[of[b]][1])
    ]
    same_port = [(a, b) for a, b in shared if ends[of[a]] == ends[of[b]]]
    m.AB, m.G = pyo.Set(initialize=shared, dimen=2), pyo.Set(initialize=same_port, dimen=2)
    m.s = pyo.Var(m.A, bounds=lambda _, a: (max(arrival[coflow[of[a]]], setup), horizon))
    m.l = pyo.Var(m.A, domain=pyo.NonNegativeReals)
    m.y, m.g = pyo.Var(m.AB, domain=pyo.Binary), pyo.Var(m.G, domain=pyo.Binary)
    m.w = pyo.Var(m.A, m.K, domain=pyo.Binary)
    m.end = pyo.Var(m.C)
    m.complete = pyo.Constraint(m.A, rule=lambda m, a: m.end[coflow[of[a]]] >= m.s[a] + m.l[a])
    m.whole = pyo.Constraint(flows, rule=lambda m, f: sum(m.l[a] for a in m.A if of[a] == f) == need[f])
    m.placed = pyo.Constraint(m.A, rule=lambda m, a: sum(m.w[a, s] for s in m.K) == 1)
    m.order = pyo.Constraint(
        m.AB, rule=lambda m, a, b: m.y[a, b] + m.y[b, a] == 1 if a < b else pyo.Constraint.Skip
    )

    def follows(m: pyo.ConcreteModel, a: int, b: int, switch: int) -> Any:
        dark = setup * (1 - m.g[a, b]) if (a, b) in m.G else setup
        apart = 3 - m.y[a, b] - m.w[a, switch] - m.w[b, switch]
        return m.s[b] >= m.s[a] + m.l[a] + dark - (horizon + setup) * apart

    m.follows = pyo.Constraint(m.AB, m.K, rule=follows)
    m.kept = pyo.Constraint(m.G, rule=lambda m, a, b: m.g[a, b] <= m.y[a, b])
    m.together = pyo.Constraint(
        m.G,
        m.K,
        range(2),
        rule=lambda m, a, b, s, way: m.g[a, b] <= 1 - (1 - 2 * way) * (m.w[a, s] - m.w[b, s]),
    )
    between = [(a, b, c) for a, b in same_port for c in m.A if (a, c) in m.AB and ends[of[c]] != ends[of[a]]]
    m.undisturbed = pyo.Constraint(between, rule=lambda m, a, b, c: m.g[a, b] <= m.y[c, a] + m.y[b, c])
    m.goal = pyo.Objective(expr=sum(m.end[c] - arrival[c] for c in m.C) / len(arrival), sense=pyo.minimize)
    return m
