"""The formal model of system `fairshare` in Pyomo, in the symbols of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.problem.problem import SharedStore

if TYPE_CHECKING:
    import pyomo.environ as pyo

Variant = Annotated[
    Literal["level", "as printed"],
    Field(
        description="level: the least share is a variable and is maximized; as printed: shares are at most "
        "fair shares and throughput is maximized, as in Table 1 of the paper"
    ),
]
LEVEL: Final = "level"


def formulation(problem: SharedStore, *, variant: Variant = "level") -> pyo.ConcreteModel:
    """Return placement, splits and local shares of all tenants as one model.

    maximize    s                            level; as printed (1): sum_t x_t
    subject to  sum_n r_tn <= z_t            (2), as printed alone
                sum_t r_tn <= c_n            (3)
                sum_p Q_tnp <= r_tn          (4)
                sum_n I_tnp = rho_t          (5), at most one in a domain, within memory and most_nodes
                sum_n Q_tnp <= f_tp          (6); of fixed mix: sum_n Q_tnp = (f_tp / sum_p f_tp) x_t
                x_t >= z_t s                 z_t: fair share, what t would get if the store were one pool

    Table 1 as printed is not work-conserving: (2) caps a tenant at its fair share also where others leave
    theirs. The text, and Figure 5, let tenants exceed it; so the level is a variable here.

    source  Shue, Freedman, Shaikh 2013 (Pisces), Table 1
    """
    import pyomo.environ as pyo  # only needed for the formal model

    m = pyo.ConcreteModel("fairshare")
    z, demand = fair_share_kops(problem).tolist(), problem.demand_of_tenant.tolist()
    m.T = pyo.RangeSet(0, len(problem.tenants) - 1)
    m.P = pyo.RangeSet(0, len(problem.partitions) - 1)
    m.N = pyo.RangeSet(0, len(problem.nodes) - 1)
    m.I = pyo.Var(m.P, m.N, domain=pyo.Binary)
    m.Q = pyo.Var(m.P, m.N, domain=pyo.NonNegativeReals)
    m.r = pyo.Var(m.T, m.N, domain=pyo.NonNegativeReals)
    m.on = pyo.Var(m.T, m.N, domain=pyo.Binary)
    m.x = pyo.Var(m.T, bounds=lambda _, t: (0.0, demand[t]))
    m.s = pyo.Var(bounds=(0.0, 1.0))
    owner = problem.tenant.tolist()
    partitions_of = {t: [p for p in m.P if owner[p] == t] for t in m.T}
    _fix_replicas(problem, m)
    if variant == "as printed":
        m.fair_share = pyo.Constraint(m.T, rule=lambda m, t: sum(m.r[t, n] for n in m.N) <= z[t])

    capacity, per_op = problem.capacity, problem.per_op
    m.node = pyo.Constraint(
        m.N,
        range(capacity.shape[1]),
        rule=lambda m, n, r: sum(float(per_op[t, r]) * m.r[t, n] for t in m.T) <= float(capacity[n, r]),
    )
    m.local = pyo.Constraint(
        m.T, m.N, rule=lambda m, t, n: sum(m.Q[p, n] for p in partitions_of[t]) <= m.r[t, n]
    )
    _place_replicas(problem, m)
    _serve_demand(problem, m, partitions_of)
    m.share = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] >= z[t] * m.s)
    goal = m.s if variant == LEVEL else sum(m.x[t] for t in m.T)
    m.goal = pyo.Objective(expr=goal, sense=pyo.maximize)
    return m


def _fix_replicas(problem: SharedStore, m: pyo.ConcreteModel) -> None:
    """Fix the replicas of a model that failed nodes and rules exclude, or that rules pin."""
    forbidden, pinned = problem.is_forbidden, problem.is_pinned
    for p in m.P:
        for n in m.N:
            if problem.is_failed[n] or (forbidden is not None and forbidden[p, n]):
                m.I[p, n].fix(0)
            elif pinned is not None and pinned[p, n]:
                m.I[p, n].fix(1)


def _place_replicas(problem: SharedStore, m: pyo.ConcreteModel) -> None:
    """Add constraint (5) to a model: replicas of each partition, within domains, memory and most_nodes."""
    import pyomo.environ as pyo

    owner, f = problem.tenant.tolist(), problem.demand_kops.tolist()
    domains = [[n for n in m.N if problem.domain[n] == d] for d in sorted(set(problem.domain.tolist()))]
    m.replicas = pyo.Constraint(
        m.P, rule=lambda m, p: sum(m.I[p, n] for n in m.N) == int(problem.wanted_replicas[p])
    )
    m.placed = pyo.Constraint(
        m.P, m.N, rule=lambda m, p, n: m.Q[p, n] <= min(f[p], float(problem.rate_kops[n])) * m.I[p, n]
    )
    m.domain = pyo.Constraint(
        m.P, range(len(domains)), rule=lambda m, p, d: sum(m.I[p, n] for n in domains[d]) <= 1
    )
    m.memory = pyo.Constraint(
        m.N,
        rule=lambda m, n: (
            sum(float(problem.size_gb[p]) * m.I[p, n] for p in m.P) <= float(problem.memory_gb[n])
        ),
    )
    m.present = pyo.Constraint(m.P, m.N, rule=lambda m, p, n: m.I[p, n] <= m.on[owner[p], n])
    m.most = pyo.Constraint(m.T, rule=lambda m, t: sum(m.on[t, n] for n in m.N) <= int(problem.most_nodes[t]))


def _serve_demand(
    problem: SharedStore, m: pyo.ConcreteModel, partitions_of: Mapping[int, Sequence[int]]
) -> None:
    """Add constraint (6) to a model: the demand of each partition, and the rate of each tenant.

    partitions_of  partitions by tenant
    """
    import pyomo.environ as pyo

    owner, f, demand = (
        problem.tenant.tolist(),
        problem.demand_kops.tolist(),
        problem.demand_of_tenant.tolist(),
    )

    def demanded(m: pyo.ConcreteModel, p: int) -> Any:
        sent = sum(m.Q[p, n] for n in m.N)
        if not problem.is_fixed[owner[p]]:
            return sent <= f[p]
        return sent == float(problem.share_of_tenant[p]) * m.x[owner[p]]

    def summed(m: pyo.ConcreteModel, t: int) -> Any:
        if problem.is_fixed[t] and demand[t] > 0:
            return pyo.Constraint.Skip
        return m.x[t] == sum(m.Q[p, n] for p in partitions_of[t] for n in m.N)

    m.demand = pyo.Constraint(m.P, rule=demanded)
    m.rate = pyo.Constraint(m.T, rule=summed)
