"""Check of the limits of a plan, from its tables alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tolerances import differs, exceeds
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import Content, Sharing, read_plan, sum_by_node
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

Numbers = Floats | Ints


def check(problem: SharedStore, plan: Sharing) -> Violations:
    """Return the constraint violations of the plan, by name.

    nodes       a partition has two replicas in one domain
    failed      a replica is on a node that does not work
    replicas    a partition has more replicas than its tenant wants
    placed      a partition has fewer replicas than its tenant wants
    memory      replicas take more than a node's memory
    most_nodes  a tenant is on more nodes than it may be
    pinned      a partition has no replica where it must have one
    forbidden   a partition has a replica where it must have none
    demand      a partition is served more than its demand
    limit       a tenant is served more than its limit
    reserved    a tenant is served less than its reserved rate, up to its demand
    mix         partitions of a tenant of fixed mix are not served in proportion
    rate        a node serves more than its rate, or uses more of a resource than it has
    shares      rates of a tenant at nodes or in all are not what its replicas serve; its fair share or level
                is not that of its weight and demand

    PlanRejected where it is no plan: see `read_plan`.
    """
    content = read_plan(problem, plan)
    violations = _check_places(problem, content)
    return violations + _check_rates(problem, content) + _check_sums(problem, content, plan)


def _names(problem: SharedStore, partitions: np.ndarray) -> list[str]:
    tenants = problem.tenant_names[problem.tenant[partitions]]
    return [
        f"partition {name} of {tenant}"
        for tenant, name in zip(tenants, problem.partition_names[partitions], strict=True)
    ]


def _check_places(problem: SharedStore, content: Content) -> Violations:
    partition, node = content.replicas
    count = np.bincount(partition, minlength=len(problem.partitions))
    requested = problem.wanted_replicas
    domains = pd.Series(problem.domain[node]).groupby(partition).nunique()
    distinct = np.zeros(len(problem.partitions))
    distinct[domains.index.to_numpy()] = domains.to_numpy()
    all_partitions = np.arange(len(problem.partitions))

    def partitions(limit: str, broken: Bools, amount: Numbers, allowed: Numbers, unit: str) -> Violations:
        rows = np.flatnonzero(broken)
        return Violations.of(
            limit,
            where=_names(problem, all_partitions[rows]),
            amount=amount[rows],
            allowed=allowed[rows],
            unit=unit,
        )

    violations = partitions("nodes", distinct < count, count, distinct, "domains")
    violations += partitions("replicas", count > requested, count, requested, "replicas")
    violations += partitions("placed", count < requested, count, requested, "replicas")
    dead = problem.is_failed[node]
    violations += (
        Violations.of(
            "failed", where=_names(problem, partition[dead]), amount=1.0, allowed=0.0, unit="replicas"
        )
        if dead.any()
        else Violations()
    )
    used = add_up(node, weights=problem.size_gb[partition], minlength=len(problem.nodes))
    violations += _nodes(problem, "memory", used, problem.nodes["memory_gb"].to_numpy(float), "GB")
    pairs = pd.DataFrame({"tenant": problem.tenant[partition], "node": node}).drop_duplicates()
    lives = np.bincount(pairs["tenant"], minlength=len(problem.tenants))
    violations += _tenants(problem, "most_nodes", lives, problem.most_nodes, "nodes")
    here = (
        np.zeros((len(problem.partitions), len(problem.nodes)), dtype=bool)
        if (problem.is_pinned is not None or problem.is_forbidden is not None)
        else None
    )
    if here is not None:
        here[partition, node] = True
        for limit, marked, wrong in (
            ("pinned", problem.is_pinned, ~here),
            ("forbidden", problem.is_forbidden, here),
        ):
            if marked is None:
                continue
            rows, columns = np.nonzero(marked & wrong)
            where = [
                f"{name}, node {problem.node_names[n]}"
                for name, n in zip(_names(problem, rows), columns.tolist(), strict=True)
            ]
            amount = 0.0 if limit == "pinned" else 1.0
            violations += Violations.of(
                limit, where=where, amount=amount, allowed=1 - amount, unit="replicas"
            )
    return violations


def _check_rates(problem: SharedStore, content: Content) -> Violations:
    partition, node = content.replicas
    served = add_up(partition, weights=content.kops, minlength=len(problem.partitions))
    rows = np.flatnonzero(exceeds(served, problem.demand_kops))
    violations = Violations.of(
        "demand",
        where=_names(problem, rows),
        amount=served[rows],
        allowed=problem.demand_kops[rows],
        unit="kops",
    )
    total = add_up(problem.tenant, weights=served, minlength=len(problem.tenants))
    violations += _tenants(problem, "limit", total, problem.limit_kops, "kops")
    rows = np.flatnonzero(exceeds(problem.reserved_kops, total))
    violations += Violations.of(
        "reserved",
        where=[str(name) for name in problem.tenant_names[rows]],
        amount=total[rows],
        allowed=problem.reserved_kops[rows],
        unit="kops",
    )
    due = problem.share_of_tenant * total[problem.tenant]
    apart = differs(served, due)
    rows = np.flatnonzero(apart & problem.is_fixed[problem.tenant])
    violations += Violations.of(
        "mix", where=_names(problem, rows), amount=served[rows], allowed=due[rows], unit="kops"
    )
    for r, name in enumerate(problem.resource_names):
        use = content.kops * problem.per_op[problem.tenant[partition], r]
        load = add_up(node, weights=use, minlength=len(problem.nodes))
        unit = "kops" if r == 0 else name
        violations += _nodes(problem, "rate", load, problem.capacity[:, r], unit)
    return violations


def _check_sums(problem: SharedStore, content: Content, plan: Sharing) -> Violations:
    """Compare the tables of sums with the replicas' requests."""
    by_node = sum_by_node(problem, content.replicas, content.kops)
    stated = np.zeros_like(by_node)
    cells = (problem.find_tenants(plan.shares["tenant"]), problem.find_nodes(plan.shares["node"]))
    np.add.at(stated, cells, plan.shares["kops"].to_numpy(float))
    tenant, node = np.nonzero(differs(stated, by_node))
    total = add_up(
        problem.find_tenants(plan.rates["tenant"]), plan.rates["kops"].to_numpy(float), len(by_node)
    )
    rows = np.flatnonzero(differs(total, by_node.sum(axis=1)))
    return (
        _check_levels(problem, plan)
        + Violations.of(
            "shares",
            where=[
                f"{problem.tenant_names[t]} at {problem.node_names[n]}"
                for t, n in zip(tenant.tolist(), node.tolist(), strict=True)
            ],
            amount=stated[tenant, node],
            allowed=by_node[tenant, node],
            unit="kops",
        )
        + Violations.of(
            "shares",
            where=[str(problem.tenant_names[row]) for row in rows.tolist()],
            amount=total[rows],
            allowed=by_node.sum(axis=1)[rows],
            unit="kops",
        )
    )


def _check_levels(problem: SharedStore, plan: Sharing) -> Violations:
    """Compare fair shares with those of the problem, and levels with rates over fair shares."""
    names = plan.rates["tenant"].astype(str)
    columns = {name: plan.rates[name].to_numpy(float) for name in ("kops", "fair_share_kops", "level")}
    fair = pd.Series(fair_share_kops(problem), index=problem.tenant_names).reindex(names).to_numpy(float)
    level = np.divide(columns["kops"], fair, out=np.zeros_like(fair), where=fair > 0)
    violations = Violations()
    for stated, right, unit in (
        (columns["fair_share_kops"], fair, "kops of fair share"),
        (columns["level"], level, "of the fair share"),
    ):
        rows = np.flatnonzero(differs(stated, right))
        where = [str(names.iloc[row]) for row in rows]
        violations += Violations.of(
            "shares", where=where, amount=stated[rows], allowed=right[rows], unit=unit
        )
    return violations


def _nodes(problem: SharedStore, limit: str, amount: Numbers, allowed: Numbers, unit: str) -> Violations:
    return _over(limit, [f"node {name}" for name in problem.node_names], amount, allowed, unit)


def _tenants(problem: SharedStore, limit: str, amount: Numbers, allowed: Numbers, unit: str) -> Violations:
    return _over(limit, [str(name) for name in problem.tenant_names], amount, allowed, unit)


def _over(limit: str, names: Sequence[str], amount: Numbers, allowed: Numbers, unit: str) -> Violations:
    rows = np.flatnonzero(exceeds(amount, allowed))
    return Violations.of(
        limit,
        where=[names[row] for row in rows.tolist()],
        amount=amount[rows],
        allowed=allowed[rows],
        unit=unit,
    )
