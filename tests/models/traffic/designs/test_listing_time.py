"""Time limits that are too short to list the flows of each demand."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given

from planner.contract.proof import Status
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.designs import listing_time
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import as_graph, problems


@given(problem=problems())
def test_flows_are_the_fewest_links_of_all_demands(problem: Traffic) -> None:
    hops = dict(nx.all_pairs_shortest_path_length(as_graph(problem)))
    demands = problem.demands[problem.rate_mbps > 0]
    expected = sum(
        hops.get(source, {}).get(target, 0)
        for source, target in zip(demands["source"], demands["target"], strict=True)
    )
    assert listing_time.count_flows(problem) == expected


@pytest.mark.parametrize("design", ["ecmp_hash", "mptcp", "drain", "ffc"])
def test_a_design_says_that_the_limit_is_too_short_and_how_long_it_takes(
    design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_time, "S_PER_FLOW", 0.1)
    problem = generators.abilene()
    entry = Entry(label=design, design=SYSTEM.design(design))
    flows = listing_time.count_flows(problem)
    run = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=0.09 * flows))
    assert run.plan is None
    assert run.proof.status is Status.UNDECIDED
    assert f"on {flows:,} links in all take {0.1 * flows:.0f} s or more" in run.proof.reasons[0]
    monkeypatch.setattr(listing_time, "S_PER_FLOW", 1e-6)
    assert evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=30.0)).plan is not None
