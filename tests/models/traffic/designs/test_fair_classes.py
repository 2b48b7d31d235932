"""Classes of a pair under fairness among demands, against networks where each class has its own source."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from planner_models.traffic import Traffic, measure
from planner_models.traffic.designs import concurrent_flow_fptas, optimum, utility_maximization
from tests.models.traffic.networks import both_ways, network

LINKS = both_ways([("a", "b", 10.0), ("b", "c", 6.0), ("a", "c", 4.0)])
DEMANDS = [
    ("a", "c", 9.0, "gold"),
    ("a", "c", 3.0, "bronze"),
    ("b", "c", 5.0, "bronze"),
    ("c", "a", 2.0, "gold"),
]


def with_classes() -> Traffic:
    plain = network(LINKS, [("a", "c", 1.0)])
    return Traffic(
        nodes=plain.nodes,
        links=plain.links,
        demands=pd.DataFrame(DEMANDS, columns=["source", "target", "rate_mbps", "class"]),
        classes=pd.DataFrame({"class": ["gold", "bronze"], "priority": [1, 2]}),
    )


def with_sources() -> Traffic:
    """Return the network in which each demand starts at a node of its own behind its source."""
    entries = [(f"{source}{place}", source, 1000.0) for place, (source, *_) in enumerate(DEMANDS)]
    return network(
        [*LINKS, *entries],
        [(f"{source}{place}", target, rate) for place, (source, target, rate, _) in enumerate(DEMANDS)],
    )


@pytest.mark.parametrize(
    "parameters",
    [{"fairness": "proportional"}, *({"fairness": "max-min", "of": one} for one in ("share", "rate"))],
    ids=str,
)
def test_each_class_is_a_demand_of_its_own(parameters: dict[str, Any]) -> None:
    ours = utility_maximization.route(with_classes(), **parameters)
    apart = utility_maximization.route(with_sources(), **parameters)
    assert ours.plan is not None
    assert apart.plan is not None
    figures, others = measure(with_classes(), ours.plan, None), measure(with_sources(), apart.plan, None)
    for name in ("geometric_rate_share", "min_rate_share"):
        assert figures[name] == pytest.approx(others[name], rel=1e-3)


@pytest.mark.parametrize("design", [optimum.route, concurrent_flow_fptas.route])
def test_classes_get_the_same_share_of_the_concurrent_flow(design: Any) -> None:
    decision = design(with_classes(), objective="concurrent")
    assert decision.plan is not None
    assert decision.proof.objective == pytest.approx(10 / 17, rel=0.06)  # both links into c, of 17 Mbit/s
    assert measure(with_classes(), decision.plan, None)["concurrent_flow"] == pytest.approx(
        decision.proof.objective
    )
