"""Signalling of control planes, counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import Signalling
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.designs import link_weights
from planner_models.traffic.designs.bgp_exits import describe_networks
from planner_models.traffic.information import signalling
from planner_models.traffic.plan.plan import Routing
from tests.models.traffic.networks import both_ways, network

SQUARE = network(
    both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 5.0), ("c", "d", 5.0)]),
    [("a", "d", 12.0), ("a", "b", 1.0), ("c", "d", 1.0)],
)
REPORTS = 3 * 12  # a reports two demands, c one: each a name and a figure


def make_plan(problem: Traffic, rows: list[tuple[str, str, str, str, float]]) -> Routing:
    flows = pd.DataFrame(rows, columns=["source", "target", "tail", "head", "rate_mbps"])
    return SYSTEM.plan.from_tables(problem, {"flows": flows.assign(parallel=1)})


ROWS = [
    ("a", "d", "a", "b", 8.0),
    ("a", "d", "b", "d", 8.0),
    ("a", "d", "a", "c", 4.0),
    ("a", "d", "c", "d", 4.0),
    ("a", "b", "a", "b", 1.0),
    ("c", "d", "c", "d", 1.0),
]


def test_every_source_reports_and_every_node_gets_its_splits() -> None:
    plan = make_plan(SQUARE, ROWS)
    # a, b and c forward; each of six rows has source, target, next hop and share
    assert signalling.signal_splits(SQUARE, plan) == Signalling(
        messages=2 + 3, bytes=REPORTS + 6 * (3 * 4 + 8)
    )


def test_splits_by_target_are_shorter() -> None:
    rows = [("d", "a", "b"), ("d", "b", "d"), ("d", "a", "c"), ("d", "c", "d"), ("b", "a", "b")]
    rates = [8.0, 8.0, 4.0, 5.0, 1.0]
    flows = pd.DataFrame(rows, columns=["target", "tail", "head"]).assign(parallel=1, rate_mbps=rates)
    plan = SYSTEM.plan.from_tables(SQUARE, {"flows": flows})
    assert signalling.signal_splits(SQUARE, plan) == Signalling(
        messages=2 + 3, bytes=REPORTS + 5 * (2 * 4 + 8)
    )


def test_sources_of_elastic_demands_get_their_rates_too() -> None:
    plan = make_plan(SQUARE, ROWS)
    result = signalling.signal_splits_and_rates(SQUARE, plan)
    assert result == Signalling(messages=5, bytes=REPORTS + 6 * 20 + 3 * 12)


def test_whole_paths_need_no_shares() -> None:
    plan = make_plan(
        SQUARE, [row for row in ROWS if row[:4] not in {("a", "d", "a", "c"), ("a", "d", "c", "d")}]
    )
    assert signalling.signal_paths(SQUARE, plan) == Signalling(messages=2 + 3, bytes=REPORTS + 4 * 12)


def test_weights_are_sent_to_every_node_and_flooded() -> None:
    plan = link_weights.route(SQUARE, evaluations=10).plan
    assert plan is not None
    # four nodes are sent their weights, and each announces them over eight links
    assert signalling.signal_weights(SQUARE, plan) == Signalling(
        messages=2 + 4 + 4 * 8, bytes=REPORTS + 8 * 12 + 8 * 8 * 12
    )


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
def test_designs_without_shared_information_send_no_messages(design: Design) -> None:
    """All others send some, but those whose announcements change with the network, not with demands."""
    run = evaluate(SYSTEM, SQUARE, Entry(label=design.name, design=design))
    alone = design.mechanism in (Mechanism.NONE, Mechanism.REACTION) or design.doubts is describe_networks
    assert (run.metrics["messages"] == 0) == alone
    assert (run.metrics["signalling_bytes"] == 0) == alone
