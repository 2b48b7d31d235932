"""What control planes tell each other, counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.exchange import Exchange
from planner.run import evaluate
from planner.scenario import Entry
from planner.system import Design, Mechanism
from planner_models.traffic import SYSTEM, Traffic, exchange, weights
from planner_models.traffic.routing import Routing
from tests.traffic.networks import both_ways, network

SQUARE = network(
    both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 5.0), ("c", "d", 5.0)]),
    [("a", "d", 12.0), ("a", "b", 1.0), ("c", "d", 1.0)],
)
REPORTS = 3 * 12  # a tells of two demands, c of one: each a name and a figure


def routed(problem: Traffic, rows: list[tuple[str, str, str, str, float]]) -> Routing:
    flows = pd.DataFrame(rows, columns=["source", "target", "tail", "head", "rate_mbps"])
    return SYSTEM.plan_from_tables(problem, {"flows": flows.assign(parallel=1)})


BY_PAIR = [
    ("a", "d", "a", "b", 8.0),
    ("a", "d", "b", "d", 8.0),
    ("a", "d", "a", "c", 4.0),
    ("a", "d", "c", "d", 4.0),
    ("a", "b", "a", "b", 1.0),
    ("c", "d", "c", "d", 1.0),
]


def test_a_controller_hears_every_source_and_tells_every_node_its_splits() -> None:
    plan = routed(SQUARE, BY_PAIR)
    # a, b and c forward; each of six rows has source, target, next hop and share
    assert exchange.central(SQUARE, plan) == Exchange(messages=2 + 3, bytes=REPORTS + 6 * (3 * 4 + 8))


def test_splits_by_target_are_shorter() -> None:
    rows = [("d", "a", "b"), ("d", "b", "d"), ("d", "a", "c"), ("d", "c", "d"), ("b", "a", "b")]
    rates = [8.0, 8.0, 4.0, 5.0, 1.0]
    flows = pd.DataFrame(rows, columns=["target", "tail", "head"]).assign(parallel=1, rate_mbps=rates)
    plan = SYSTEM.plan_from_tables(SQUARE, {"flows": flows})
    assert exchange.central(SQUARE, plan) == Exchange(messages=2 + 3, bytes=REPORTS + 5 * (2 * 4 + 8))


def test_elastic_demands_are_told_their_rates_too() -> None:
    plan = routed(SQUARE, BY_PAIR)
    found = exchange.with_rates(SQUARE, plan)
    assert found == Exchange(messages=5, bytes=REPORTS + 6 * 20 + 3 * 12)


def test_whole_paths_need_no_shares() -> None:
    plan = routed(
        SQUARE, [row for row in BY_PAIR if row[:4] not in {("a", "d", "a", "c"), ("a", "d", "c", "d")}]
    )
    assert exchange.paths(SQUARE, plan) == Exchange(messages=2 + 3, bytes=REPORTS + 4 * 12)


def test_weights_are_sent_to_every_node_and_flooded() -> None:
    plan = weights.route(SQUARE, evaluations=10).plan
    assert plan is not None
    # four nodes are sent their weights, and each announces them over eight links
    assert exchange.weights(SQUARE, plan) == Exchange(
        messages=2 + 4 + 4 * 8, bytes=REPORTS + 8 * 12 + 8 * 8 * 12
    )


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
def test_who_is_told_nothing_tells_nothing(design: Design) -> None:
    """A mechanism without shared information exchanges nothing, every other one something."""
    run = evaluate(SYSTEM, SQUARE, Entry(label=design.name, design=design))
    alone = design.mechanism in (Mechanism.NONE, Mechanism.REACTION)
    assert (run.metrics["messages"] == 0) == alone
    assert (run.metrics["exchanged_bytes"] == 0) == alone
