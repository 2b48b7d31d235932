"""Formal models of system `fairshare`: in Pyomo, and as a program open to constraints of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.backends.completion import complete
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.open_model import Goal, OpenModel
from planner.errors import InputError, did_you_mean
from planner.options import Options, Service
from planner_models.fairshare.designs import optimum
from planner_models.fairshare.designs.fair_rates import build_model, served_of
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import Replicas, Sharing, make_plan, place_as, read_plan, sum_by_node
from planner_models.fairshare.plan.service import fit_rates
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

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
TIME_LIMIT_S: Final = 10.0
"""Time limit where the user names none."""
GAP: Final = 1e-4
"""Gap at which the design calls its plan optimal, too."""


def formulation(problem: SharedStore, *, variant: Variant = "level") -> pyo.ConcreteModel:
    """Return placement, splits and local shares of all tenants as one model.

    maximize    s                            level; as printed (1): sum_t x_t
    subject to  sum_n r_tn <= z_t            (2), as printed alone
                sum_t r_tn <= c_n            (3)
                sum_p Q_tnp <= r_tn          (4)
                sum_n I_tnp = rho_t          (5), at most one in a domain, within memory and most_nodes
                sum_n Q_tnp <= f_tp          (6); of fixed mix: sum_n Q_tnp = (f_tp / sum_p f_tp) x_t
                x_t >= z_t s                 z_t: fair share, what t would get if the store were one pool
                b_t <= x_t <= l_t            reserved rate, limit

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
    m.x = pyo.Var(m.T, bounds=lambda _, t: (float(problem.reserved_kops[t]), demand[t]))
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


def open_model(
    problem: SharedStore, *, service: Service = "best", previous: Sharing | None = None
) -> OpenModel[Sharing]:
    """Return the integer program of `optimum` with an exact placement, open to changes.

    Variables, with the columns of their members:

    placed       1 where a node has a replica of a partition (tenant, partition, node)
    kops         requests that a replica serves, thousands per second (tenant, partition, node)
    on           1 where a tenant has replicas on a node, at least (tenant, node)
    rate         requests of a tenant that are served, thousands per second (tenant, fair_share_kops)
    least_share  least rate of a tenant over its fair share

    Constraints: replicas, domains, memory, on, most_nodes, placed, capacity of each resource, mix, demand,
    sum and share. Among plans with one least share, it serves the most requests with the placement that is
    found. The search starts from the plan of the design `optimum`, and ends at a gap of 0.01% or after 10 s:
    practical for up to some hundreds of partitions times nodes.

    previous  plan before, whose replicas are where data lies now; default: table placed
    """
    problem = problem if previous is None else place_as(problem, previous)
    program = build_model(problem)
    if service == "all":
        lower = program.lower.copy()
        rates = next(block for block in program.columns if block.name == "rate")
        lower[rates.start : rates.stop] = problem.demand_of_tenant
        program = replace(program, lower=lower)
    shape = (len(problem.partitions), len(problem.nodes))

    def read(x: Floats) -> Sharing:
        placed = program.values("placed", x).reshape(shape) > 0.5
        replicas = Replicas(*np.nonzero(placed))
        kops = np.maximum(program.values("kops", x).reshape(shape)[placed], 0.0)
        kops = fit_rates(problem, replicas, _keep_mix(problem, replicas, kops))
        split = served_of(problem, replicas, kops).split
        weight = sum_by_node(problem, replicas, kops)
        return make_plan(problem, replicas, kops, split, weight, fair_share_kops=fair_share_kops(problem))

    @cache
    def start(options: Options) -> Floats | None:
        plan = optimum.share(problem, options=options).plan
        if plan is None:
            return None
        content = read_plan(problem, plan)
        placed = np.zeros(shape)
        placed[content.replicas] = 1.0
        return complete(program, {"placed": placed}, options)

    return OpenModel(
        program=program,
        read=read,
        members=_list_members(problem),
        then={"rate": -1.0},
        goals=_make_goals(problem),
        follows=frozenset({"least_share"}),
        start=start,
        options={"gap": GAP, "time_limit_s": TIME_LIMIT_S},
    )


def _keep_mix(problem: SharedStore, replicas: Replicas, kops: Floats) -> Floats:
    """Return rates of replicas (K,), in proportion for tenants of fixed mix despite a solver's rounding."""
    owner, share = problem.tenant, problem.share_of_tenant
    total = add_up(replicas.partition, kops, len(problem.partitions))
    asked = np.flatnonzero(problem.is_fixed[owner] & (share > 0))
    rate = np.full(len(problem.tenants), np.inf)
    np.minimum.at(rate, owner[asked], total[asked] / share[asked])
    factor = np.ones(len(total))
    target = rate[owner[asked]] * share[asked]
    np.divide(target, total[asked], out=target, where=total[asked] > 0)
    factor[asked] = target
    return np.asarray(kops * factor[replicas.partition])


def _list_members(problem: SharedStore) -> Mapping[str, Callable[[], pd.DataFrame]]:
    """Return the tables of members of each block of variables."""
    nodes, tenants = len(problem.nodes), len(problem.tenants)

    def list_replicas() -> pd.DataFrame:
        return pd.DataFrame(
            {
                "tenant": np.repeat(problem.tenant_names[problem.tenant], nodes),
                "partition": np.repeat(problem.partition_names, nodes),
                "node": np.tile(problem.node_names, len(problem.partitions)),
            }
        )

    def list_pairs() -> pd.DataFrame:
        return pd.DataFrame(
            {
                "tenant": np.repeat(problem.tenant_names, nodes),
                "node": np.tile(problem.node_names, tenants),
            }
        )

    def list_tenants() -> pd.DataFrame:
        return pd.DataFrame({"tenant": problem.tenant_names, "fair_share_kops": fair_share_kops(problem)})

    return {"placed": list_replicas, "kops": list_replicas, "on": list_pairs, "rate": list_tenants}


def _make_goals(problem: SharedStore) -> dict[str, Goal]:
    """Return the aims by which plans near the largest least share may differ."""

    def serve_least(m: ProgramBuilder, node: str, _optimum: Floats) -> Expression:
        names = problem.node_names.tolist()
        if node not in names:
            raise InputError(f"least_on: '{node}' is no node{did_you_mean(node, names)}")
        return m["kops"][:, names.index(node)].sum()

    def fill_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        largest = m.variables("busiest", ())
        for r, name in enumerate(problem.resource_names):
            use = (m["kops"] * problem.per_op[problem.tenant, r][:, None]).sum(axis=0)
            m.constrain(f"busiest {name}", use - problem.capacity[:, r] * largest, upper=0.0)
        return largest.sum()

    def serve_most(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        return m["rate"].sum()

    def copy_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        is_new = np.ones(m["placed"].shape)
        is_new[problem.placed_replicas] = 0.0
        return (m["placed"] * (is_new * problem.size_gb[:, None])).sum()

    goals = {
        "most_served": Goal(
            about="requests that are served", unit="kops", build=serve_most, sense="maximize"
        ),
        "least_busiest": Goal(about="largest utilization of a node", build=fill_least),
        "least_on": Goal(about="requests that a node serves", unit="kops", build=serve_least, value="node"),
    }
    if problem.placed is not None:
        goals["least_copied"] = Goal(
            about="data that is copied to nodes where it is not yet", unit="GB", build=copy_least
        )
    return goals
