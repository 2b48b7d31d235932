"""The formal model of system `coflows` in Pyomo: circuits in order on their ports."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from planner.errors import InputError
from planner_models.coflows.problem.problem import CoflowsInTime

if TYPE_CHECKING:
    import pyomo.environ as pyo

MOST_CIRCUITS = 16
DEFAULT_PARTS = 1


def formulation(problem: CoflowsInTime, *, parts: int = DEFAULT_PARTS) -> pyo.ConcreteModel:
    """Return the ordering program of circuits, each flow over at most `parts` of them, on circuits alone.

    minimize    mean of v_c (C_c - r_c)                 v_c: weight of coflow c over the mean one
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

    circuits = _Circuits.of(problem, parts)
    m = pyo.ConcreteModel("coflows on circuits")
    _add_variables(m, problem, circuits)
    _add_services(m, circuits)
    _add_order(m, problem, circuits)
    _add_kept(m, circuits)
    arrival, weight = circuits.arrival, problem.relative_weight.tolist()
    total = sum(weight[c] * (m.end[c] - arrival[c]) for c in m.C)
    m.goal = pyo.Objective(expr=total / len(arrival), sense=pyo.minimize)
    return m


class _Circuits(NamedTuple):
    """Circuits of the model, by number, and their coflows; times in ms.

    flow     of each circuit
    ends     source and target of each circuit
    coflow   of each circuit
    need     time of each flow
    arrival  of each coflow
    shared   pairs of circuits, in both orders, that share a port
    """

    flow: dict[int, int]
    ends: dict[int, tuple[int, int]]
    coflow: dict[int, int]
    need: dict[int, float]
    arrival: dict[int, float]
    shared: list[tuple[int, int]]

    @classmethod
    def of(cls, problem: CoflowsInTime, parts: int) -> _Circuits:
        """Return the circuits of a problem; raise InputError where there are none, or too many."""
        flows = np.flatnonzero(problem.can_complete[problem.coflow]).tolist()
        if not flows:
            raise InputError("formulation: no coflow can be complete, one at least must be")
        if len(flows) * parts > MOST_CIRCUITS:
            raise InputError(
                f"formulation: {len(flows)} flows in {parts} parts are {len(flows) * parts} circuits, must "
                f"be at most {MOST_CIRCUITS}"
            )
        flow = dict(enumerate(np.repeat(flows, parts).tolist()))
        ends = {a: (int(problem.source[f]), int(problem.target[f])) for a, f in flow.items()}
        coflow = {a: int(problem.coflow[f]) for a, f in flow.items()}
        shared = [
            (a, b)
            for a, b in itertools.permutations(flow, 2)
            if ends[a][0] == ends[b][0] or ends[a][1] == ends[b][1]
        ]
        return cls(
            flow=flow,
            ends=ends,
            coflow=coflow,
            need={f: float(problem.bits[f] / problem.circuit_rate[f]) for f in flows},
            arrival={c: float(problem.arrival_ms[c]) for c in set(coflow.values())},
            shared=shared,
        )

    def horizon(self, setup: float) -> float:
        """Return a time by which all circuits can have served, one after another."""
        return max(self.arrival.values()) + sum(self.need.values()) + (len(self.flow) + 1) * setup

    @property
    def same_ends(self) -> list[tuple[int, int]]:
        """Pairs of circuits, in both orders, with the same ports."""
        return [(a, b) for a, b in self.shared if self.ends[a] == self.ends[b]]


def _add_variables(m: pyo.ConcreteModel, problem: CoflowsInTime, circuits: _Circuits) -> None:
    """Add the sets, and the variables of times, order, switches and kept circuits."""
    import pyomo.environ as pyo

    setup, horizon = problem.setup_ms, circuits.horizon(problem.setup_ms)
    m.A = pyo.Set(initialize=range(len(circuits.flow)))
    m.K = pyo.Set(initialize=range(problem.switches))
    m.C = pyo.Set(initialize=sorted(circuits.arrival))
    m.AB = pyo.Set(initialize=circuits.shared, dimen=2)
    m.G = pyo.Set(initialize=circuits.same_ends, dimen=2)
    m.s = pyo.Var(m.A, bounds=lambda _, a: (max(circuits.arrival[circuits.coflow[a]], setup), horizon))
    m.l = pyo.Var(m.A, domain=pyo.NonNegativeReals)
    m.y, m.g = pyo.Var(m.AB, domain=pyo.Binary), pyo.Var(m.G, domain=pyo.Binary)
    m.w = pyo.Var(m.A, m.K, domain=pyo.Binary)
    m.end = pyo.Var(m.C)


def _add_services(m: pyo.ConcreteModel, circuits: _Circuits) -> None:
    """Add the completion of coflows and of flows, and one switch for each circuit."""
    import pyomo.environ as pyo

    flow, coflow, need = circuits.flow, circuits.coflow, circuits.need
    m.complete = pyo.Constraint(m.A, rule=lambda m, a: m.end[coflow[a]] >= m.s[a] + m.l[a])
    m.whole = pyo.Constraint(
        list(need), rule=lambda m, f: sum(m.l[a] for a in m.A if flow[a] == f) == need[f]
    )
    m.placed = pyo.Constraint(m.A, rule=lambda m, a: sum(m.w[a, s] for s in m.K) == 1)


def _add_order(m: pyo.ConcreteModel, problem: CoflowsInTime, circuits: _Circuits) -> None:
    """Add the order of circuits that share a port, with the set-up between them."""
    import pyomo.environ as pyo

    setup, horizon = problem.setup_ms, circuits.horizon(problem.setup_ms)

    def follows(m: pyo.ConcreteModel, a: int, b: int, switch: int) -> Any:
        dark = setup * (1 - m.g[a, b]) if (a, b) in m.G else setup
        apart = 3 - m.y[a, b] - m.w[a, switch] - m.w[b, switch]
        return m.s[b] >= m.s[a] + m.l[a] + dark - (horizon + setup) * apart

    m.order = pyo.Constraint(
        m.AB, rule=lambda m, a, b: m.y[a, b] + m.y[b, a] == 1 if a < b else pyo.Constraint.Skip
    )
    m.follows = pyo.Constraint(m.AB, m.K, rule=follows)


def _add_kept(m: pyo.ConcreteModel, circuits: _Circuits) -> None:
    """Add the conditions under which a circuit is kept for the next one between the same ports."""
    import pyomo.environ as pyo

    ends = circuits.ends
    m.kept = pyo.Constraint(m.G, rule=lambda m, a, b: m.g[a, b] <= m.y[a, b])
    m.together = pyo.Constraint(
        m.G,
        m.K,
        range(2),
        rule=lambda m, a, b, s, way: m.g[a, b] <= 1 - (1 - 2 * way) * (m.w[a, s] - m.w[b, s]),
    )
    between = [(a, b, c) for a, b in circuits.same_ends for c in m.A if (a, c) in m.AB and ends[c] != ends[a]]
    m.undisturbed = pyo.Constraint(between, rule=lambda m, a, b, c: m.g[a, b] <= m.y[c, a] + m.y[b, c])
