"""Maps of plans say why demands are left out."""

from __future__ import annotations

import planner
from planner.contract.drawing import NetworkMap
from planner_models.capacity.plan.presentation import draw
from planner_models.capacity.problem.adjustments import adjust
from tests.models.capacity.networks import problem_of


def test_nodes_say_whether_capacity_or_a_path_is_missing() -> None:
    """Without purchases the link a-b carries 1 of 3 Mbit/s, and node d has no link at all."""
    lines = [("a", "b", 1.0), ("b", "c", 9.0)]
    demands = [("a", "b", 3.0), ("b", "c", 2.0), ("c", "d", 1.0)]
    problem = adjust(problem_of(lines, demands, nodes=[{"node": name} for name in "abcd"]), budget=0.0)
    plan = planner.solve(problem, design="optimum").plan
    assert plan is not None
    (drawn,) = draw(problem, plan)
    assert isinstance(drawn, NetworkMap)
    nodes = drawn.nodes.set_index("node")
    losses = nodes[nodes["lost"] > 0]
    assert dict(zip(losses.index, losses["lost"].round(6), strict=True)) == {"a": 2.0, "c": 1.0}
    assert losses["lost_as"].to_dict() == {"a": "not served (capacity)", "c": "not served (no path)"}
