"""Shared entries in whole plans."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.multicast import SYSTEM, Channels, Multicast, check
from planner_models.multicast.designs import partitioned_aggregated
from planner_models.multicast.plan import group_capacity
from tests.models.multicast.fabrics import fat, tree, with_tables


def test_exact_sharing_is_at_least_as_good() -> None:
    problem = fat(groups=60, k=8, aggregation_copies=1, table_size=9)
    traffic = {
        method: partitioned_aggregated.partition_and_share(problem, method=method).proof
        for method in ("agglomerative", "algorithm2", "optimum")
    }
    best = traffic["optimum"].objective
    assert best <= traffic["agglomerative"].objective + 1e-6
    assert best <= traffic["algorithm2"].objective + 1e-6
    assert traffic["optimum"].bound <= best


@pytest.mark.slow
def test_sharing_goes_on_from_the_previous_plan() -> None:
    problem = crowded_edges()
    first = partitioned_aggregated.partition_and_share(problem)
    tables = problem.to_tables()
    gone = problem.groups["group"].iloc[::40].tolist()
    remaining = Multicast.from_tables(
        tables
        | {
            name: tables[name][~tables[name]["group"].astype(str).isin(gone)].reset_index(drop=True)
            for name in ("groups", "members")
        }
    )
    sticky = partitioned_aggregated.partition_and_share(remaining, keep=1.0, previous=first)
    anew = partitioned_aggregated.partition_and_share(remaining)
    assert not len(check(remaining, sticky.plan))
    assert sticky.proof.objective >= anew.proof.objective - 1e-6

    def entries(plan: Channels) -> set[tuple[str, frozenset[str]]]:
        rows = plan.meta_groups.astype({"switch": str, "group": str})
        rows = rows[~rows["group"].isin(gone)]
        return {
            (switch, frozenset(share["group"]))
            for (switch, _), share in rows.groupby(["switch", "meta_group"])
        }

    before = entries(first.plan)
    assert len(before & entries(sticky.plan)) > len(before & entries(anew.plan))


def crowded_edges() -> Multicast:
    """Return a problem with edge switches of 8 ports and more port sets than entries."""
    problem = fat(k=16, aggregation_copies=2, groups=400, tenants=10, largest_tenant=100, sizes="uniform")
    return with_tables(problem, {"core_entries": 400.0, "aggregation_entries": 400.0, "edge_entries": 20.0})


def test_congestion_is_for_the_printed_heuristic() -> None:
    problem = crowded_edges()
    linear = partitioned_aggregated.partition_and_share(problem, method="algorithm2")
    convex = partitioned_aggregated.partition_and_share(problem, method="algorithm2", port_mbps=200.0)
    assert not len(check(problem, convex.plan))
    assert convex.plan.meta_groups["meta_group"].tolist() != linear.plan.meta_groups["meta_group"].tolist()
    with pytest.raises(InputError, match="port_mbps"):
        partitioned_aggregated.partition_and_share(problem, port_mbps=200.0)


def test_chosen_copies_is_a_design() -> None:
    problem = fat(k=8, aggregation_copies=1, groups=60, table_size=40, placement="random")
    design = SYSTEM.design("chosen_copies")
    run = evaluate(SYSTEM, problem, Entry(label="c", design=design))
    assert not len(run.violations)
    assert set(run.plan.partitions["copies"]) == {float(group_capacity.choose_layout(problem).chosen)}
    assert not len(check(problem, run.plan))
    with pytest.raises(InputError, match="least_copies is 5, a pod has at most 4 copies"):
        design.decide(problem, least_copies=5)
    tight = fat(k=8, aggregation_copies=1, groups=60, table_size=3, placement="random")
    assert set(design.decide(tight, least_copies=2).plan.partitions["copies"]) == {2.0}
    other = Multicast.from_tables(tree())
    assert set(design.decide(other).plan.partitions["copies"]) == {2.0}
