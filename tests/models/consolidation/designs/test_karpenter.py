"""Karpenter's rules on its own open questions, and against the bound."""

from __future__ import annotations

from planner_models.consolidation import Consolidation, check, measure
from planner_models.consolidation.designs import karpenter, patterns
from planner_models.consolidation.problem.generators import pods
from tests.models.consolidation.fleets import machines, make


def price_of(problem: Consolidation, *, consolidate: bool = True) -> float:
    plan = karpenter.plan(problem, consolidate=consolidate).plan
    assert plan is not None
    assert not len(check(problem, plan))
    price = measure(problem, plan, None)["price_per_h"]
    assert price is not None
    return price


def types(*sizes: tuple[float, float]) -> dict[str, dict[str, list[object]]]:
    """Return types of one node with some threads and a price."""
    names: list[object] = [f"t{row}" for row in range(len(sizes))]
    return {
        "hosts": {"host_type": names, "price_per_h": [price for _, price in sizes]},
        "nodes": {
            "host_type": names,
            "node": ["0"] * len(sizes),
            "threads": [threads for threads, _ in sizes],
            "memory_gb": [64.0] * len(sizes),
        },
    }


def test_types_narrow_as_pods_join() -> None:
    """Five pods of 1 are together on a type of 8 only: the node becomes the cheapest that holds them."""
    problem = make(**types((4.0, 1.0), (8.0, 1.9)), machines=machines(count=[5.0]))
    assert price_of(problem, consolidate=False) == 1.9


def test_one_node_into_two_cheaper_ones_is_missed() -> None:
    """Two nodes of 4 at 1 each are cheaper than one of 8 at 3 (aws/karpenter-provider-aws#5304)."""
    problem = make(**types((4.0, 1.0), (8.0, 3.0)), machines=machines(count=[8.0]))
    assert price_of(problem) == 3.0
    assert patterns.plan(problem).proof.objective == 2.0


def test_no_plan_is_cheaper_than_the_bound() -> None:
    problem = pods(machines=120, shapes=8, types=6, seed=2)
    bound = patterns.plan(problem).proof.bound
    assert bound is not None
    assert bound - 1e-6 <= price_of(problem) <= price_of(problem, consolidate=False) + 1e-9


def test_present_nodes_with_the_fewest_pods_leave_first() -> None:
    problem = make(
        nodes={"host_type": ["h"], "node": ["0"], "threads": [8.0], "memory_gb": [64.0]},
        machines=machines(count=[6.0]),
        present={"host": ["a", "b"], "host_type": ["h", "h"]},
        now={"machine": ["m0", "m0"], "host": ["a", "b"], "machines": [4.0, 2.0]},
    )
    plan = karpenter.plan(problem).plan
    assert plan is not None
    assert not len(check(problem, plan))
    assert plan.fleet["host"].tolist() == ["a"]
    assert plan.moves is not None
    assert plan.moves["from_host"].tolist() == ["b", "b"]
