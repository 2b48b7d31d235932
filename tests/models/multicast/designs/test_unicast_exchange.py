"""Drop-add search between unicast and entries: no plan of `partitioned` is better, in any small problem."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner.contract.proof import Status
from planner.options import Options
from planner_models.multicast import Multicast, check, measure
from planner_models.multicast.designs import partitioned, unicast_exchange
from planner_models.multicast.designs.partitioned_aggregated import partition_and_share
from planner_models.multicast.plan import table_limits
from planner_models.multicast.problem import generators

GAP = 2e-4  # of the solver by default, with a margin


def draw_problem(seed: int) -> Multicast:
    """Return a small problem with random members and tables, many of them too small, some without entries."""
    rng = np.random.default_rng(seed)
    k, groups = int(rng.choice([4, 4, 6])), int(rng.integers(5, 40))
    drawn = generators.datacenter(
        k=k,
        aggregation_copies=int(rng.choice([1, k // 2])),
        tenants=1,
        groups=groups,
        largest_tenant=10,
        seed=seed,
    )
    hosts, names = drawn.hosts["host"].tolist(), drawn.groups["group"].tolist()
    members = [
        (group, host)
        for group in names
        for host in rng.choice(hosts, size=int(rng.integers(1, 8)), replace=False)
    ]
    sizes = {f"{layer}_entries": float(rng.integers(0, 25)) for layer in ("core", "aggregation")}
    sizes["edge_entries"] = float(rng.integers(0, max(2, groups // 3)))
    return Multicast.from_tables(
        {
            "fabric": drawn.fabric.assign(**sizes),
            "hosts": drawn.hosts,
            "groups": pd.DataFrame({"group": names, "rate_mbps": rng.uniform(1, 10, groups)}),
            "members": pd.DataFrame(members, columns=["group", "host"]),
        }
    )


def require_order(problem: Multicast) -> None:
    """Require that no design beats the optimum or a bound, and that sharing is never worse than not."""
    plans = {
        "partitioned": partitioned.partition_addresses(problem),
        "first come": partitioned.partition_addresses(problem, choose="arrival"),
        "per switch": partitioned.store_everywhere(problem),
        "shared": partition_and_share(problem),
        "algorithm 2": partition_and_share(problem, method="algorithm2"),
        "optimum": partition_and_share(problem, method="optimum"),
    }
    traffic = {}
    for name, decision in plans.items():
        assert not len(check(problem, decision.plan)), name
        traffic[name] = measure(problem, decision.plan, None)["host_traffic_mbps"]
        assert traffic[name] == pytest.approx(decision.proof.objective), name
    proven = [decision.proof for decision in plans.values() if decision.proof.bound_scope is None]
    proven += [partitioned.bound_host_traffic(problem).proof, plans["optimum"].proof]
    bounds = [proof.bound for proof in proven if proof.bound is not None]
    assert max(bounds) <= min(traffic.values()) * (1 + 1e-7)
    assert traffic["shared"] <= traffic["partitioned"] * (1 + 1e-9)
    assert traffic["algorithm 2"] <= traffic["partitioned"] * (1 + 1e-9)
    if plans["optimum"].proof.status is Status.OPTIMAL:
        assert traffic["optimum"] <= min(traffic.values()) * (1 + GAP)


@pytest.mark.parametrize("seed", range(15))
def test_shared_entries_are_never_worse_than_none(seed: int) -> None:
    require_order(draw_problem(seed))


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(100, 1100, 100))
def test_shared_entries_are_never_worse_than_none_in_1000_problems(first: int) -> None:
    for seed in range(first, first + 100):
        require_order(draw_problem(seed))


@pytest.mark.parametrize("seed", range(20, 26))
def test_a_drop_and_an_add_change_traffic_as_counted(seed: int) -> None:
    problem = draw_problem(seed)
    limits = table_limits.build_limits(problem, problem.aggregation_copies)
    selected, _ = partitioned.select_groups(problem, limits, Options())
    assert selected is not None
    edge, group, _ = problem.at_edge
    start = np.searchsorted(edge, np.arange(problem.edge_count))
    entry = np.where(selected[group], np.arange(len(edge)) - start[edge], unicast_exchange.NO_ENTRY)
    tables = unicast_exchange.EdgeTables(problem=problem, limits=limits, kept=selected, entry=entry)
    tables.entry = np.where(entry >= 0, 0, entry)  # one entry for all, at every switch
    gains = tables.drop_gains()
    for index in np.flatnonzero(selected).tolist():
        before, pairs = tables.total_mbps, tables.pairs(index)
        if gains[index] > 1e-6:
            assert tables.drop(index)
            assert before - tables.total_mbps == pytest.approx(gains[index])
            tables.entry[pairs], tables.kept[index] = 0, True
        else:
            assert not tables.drop(index)
        assert tables.total_mbps == pytest.approx(before)


@pytest.mark.parametrize("layer", ["core", "aggregation", "edge"])
def test_without_any_free_entry_groups_go_by_unicast(layer: str) -> None:
    problem = draw_problem(3)
    sizes = {"core_entries": 9.0, "aggregation_entries": 9.0, "edge_entries": 9.0, f"{layer}_entries": 0.0}
    problem = Multicast.from_tables(problem.to_tables() | {"fabric": problem.fabric.assign(**sizes)})
    require_order(problem)
    for share in ("edge", "aggregation", "both"):
        for method in ("agglomerative", "algorithm2", "optimum"):
            decision = partition_and_share(problem, share=share, method=method)
            assert not len(check(problem, decision.plan))


def test_service_for_all_refuses_groups_by_unicast() -> None:
    problem, strict = draw_problem(7), Options(service="all")
    tables = problem.to_tables()
    sizes = {"core_entries": 1.0, "aggregation_entries": 99.0, "edge_entries": 99.0}
    tight = Multicast.from_tables(tables | {"fabric": problem.fabric.assign(**sizes)})
    for decide in (partition_and_share, partitioned.partition_addresses, partitioned.store_everywhere):
        decision = decide(tight, options=strict)
        assert decision.plan is None
        assert decision.proof.status is Status.INFEASIBLE
        assert "entries, 1 are free" in decision.proof.reasons[0]
    wide = Multicast.from_tables(tables | {"fabric": problem.fabric.assign(**dict.fromkeys(sizes, 99.0))})
    for decide in (partition_and_share, partitioned.partition_addresses, partitioned.store_everywhere):
        assert len(decide(wide, options=strict).plan.partitions) == len(wide.groups)
    shared = problem.fabric.assign(core_entries=99.0, aggregation_entries=99.0, edge_entries=1.0)
    decision = partition_and_share(Multicast.from_tables(tables | {"fabric": shared}), options=strict)
    assert len(decision.plan.partitions) == len(problem.groups)
