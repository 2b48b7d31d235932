"""Placement of blocks: the fewest configurations, proven against brute force and the printed formulation."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from planner import InputError, Options, Status
from planner.contract.design import Decision
from planner_models.circuitflows import FlowsInTime
from planner_models.circuitflows.designs import block_placement, operation
from planner_models.circuitflows.problem import generators


def writes(racks: int = 5, writers: int = 2) -> FlowsInTime:
    return generators.dfsio(racks=racks, writers=writers, file_mb=2.0, block_mb=1.0, horizon_us=20_000.0)


def targets(problem: FlowsInTime, frame: pd.DataFrame) -> np.ndarray:
    """(n, n) blocks from rack to rack."""
    index = pd.Index(problem.flows["flow"]).get_indexer(pd.Index(frame["flow"]))
    blocks = np.zeros((len(problem.racks), len(problem.racks)))
    np.add.at(blocks, (problem.source[index], problem.places.get_indexer(pd.Index(frame["target_rack"]))), 1)
    return blocks


def test_a_ring_needs_one_configuration_and_random_racks_need_nearly_all() -> None:
    problem = generators.dfsio(file_mb=400.0, horizon_us=1_000.0)
    ring = targets(problem, block_placement.place_in_ring(problem, shift=1))
    assert ((ring > 0).sum(axis=1) == 1).all()
    assert (ring[np.arange(8), (np.arange(8) + 1) % 8] == 32).all()
    drawn = targets(problem, block_placement.place_randomly(problem, seed=1))
    assert (np.diag(drawn) == 0).all()
    assert ((drawn > 0).sum(axis=1) >= 6).all()


@pytest.mark.parametrize("racks_each", [1, 2])
def test_the_optimum_spreads_as_far_as_it_must_and_no_further(racks_each: int) -> None:
    problem = writes()
    made = block_placement.optimize_placement(problem, racks_each=racks_each)
    assert made.placement is not None
    assert made.proof.status is Status.OPTIMAL
    assert made.proof.objective == made.proof.bound == racks_each
    blocks = targets(problem, made.placement)
    assert (blocks.sum(axis=1) == 4).all()
    assert (blocks.sum(axis=0) == 4).all()  # no rack more than the mean
    assert ((blocks > 0).sum(axis=1) >= racks_each).all()
    assert not ((blocks > 0) & (blocks > 0).T).any()  # no two racks send to each other
    assert blocks.max() <= 4 / racks_each


def test_for_one_rack_each_the_ring_of_rehdfs_is_an_optimum() -> None:
    problem = writes()
    ring = targets(problem, block_placement.place_in_ring(problem, shift=1)) > 0
    made = block_placement.optimize_placement(problem)
    assert made.proof.bound == max(ring.sum(axis=0).max(), ring.sum(axis=1).max())


def test_no_placement_of_unequal_writers_needs_fewer() -> None:
    """Brute force: four racks write 2, 1, 1 and 0 blocks, and none may take more than two."""
    problem = writes(racks=4, writers=1)
    requested = {"r0w0b0", "r0w0b1", "r1w0b0", "r2w0b0"}
    selected = problem.flows[problem.flows["flow"].isin(requested)].reset_index(drop=True)
    problem = replace(problem, flows=selected)
    made = block_placement.optimize_placement(problem, racks_each=2, balance=1.0)
    best = 9
    for choice in itertools.product(range(4), repeat=4):
        pairs = set(zip((0, 0, 1, 2), choice, strict=True))
        loads = np.bincount(choice, minlength=4)
        own_values = any(source == target for source, target in pairs)
        if own_values or loads.max() > 2 or len({choice[0], choice[1]}) < 2:
            continue
        sends, receives = (np.bincount([pair[k] for pair in pairs], minlength=4).max() for k in (0, 1))
        best = min(best, max(sends, receives))
    assert made.proof.objective == best


@pytest.mark.parametrize(("racks_each", "balance"), [(1, 0.0), (2, 0.0), (3, 0.5)])
@pytest.mark.parametrize("backend", ["highs", "ortools"])
def test_the_fast_model_agrees_with_the_printed_one(racks_each: int, balance: float, backend: str) -> None:
    import pyomo.environ as pyo

    problem = writes()
    fast = block_placement.optimize_placement(
        problem, racks_each=racks_each, balance=balance, options=Options(backend=backend)
    )
    model = block_placement.formulation(problem, racks_each=racks_each, balance=balance)
    pyo.SolverFactory("appsi_highs").solve(model)
    assert fast.proof.objective == pytest.approx(pyo.value(model.configurations))


def test_pairs_that_other_flows_use_cost_nothing_more() -> None:
    """A flow from the first rack to the third: its blocks go there too, and one configuration is enough."""
    problem = writes()
    other = problem.flows.iloc[[0]].assign(flow="other", target_rack="r2", after="none")
    problem = replace(problem, flows=pd.concat([problem.flows, other], ignore_index=True))
    made = block_placement.optimize_placement(problem)
    assert made.placement is not None
    assert made.proof.objective == made.proof.bound == 1
    assert targets(problem, made.placement)[0].tolist() == [0, 0, 4, 0, 0]


def test_churn_keeps_most_blocks_where_blocks_went_before() -> None:
    problem = writes()
    before = block_placement.place_in_ring(problem, shift=2)
    used = block_placement.used_pairs(problem, before)
    selected = block_placement.optimize_placement(problem, used=used, churn=0.0)
    assert selected.placement is not None
    assert (targets(problem, selected.placement)[~used] == 0).all()
    some = block_placement.optimize_placement(problem, racks_each=2, used=used, churn=0.5)
    assert some.placement is not None
    assert targets(problem, some.placement)[~used].sum() <= 0.5 * 20
    none = block_placement.optimize_placement(problem, racks_each=2, used=used, churn=0.1)
    assert none.placement is None
    assert none.proof.status is Status.INFEASIBLE


@pytest.mark.slow
def test_the_last_plan_limits_the_next() -> None:
    problem = writes()
    first = operation.run_shifted_placement(problem, shift=2)
    second = operation.run_optimal_placement(problem, churn=0.0, previous=first)
    assert isinstance(second, Decision)
    assert second.plan is not None
    assert first.plan is not None
    np.testing.assert_array_equal(
        targets(problem, second.plan.placement), targets(problem, first.plan.placement)
    )


def test_impossible_limits_are_refused() -> None:
    with pytest.raises(InputError, match="racks_each is 5, there are 4 other racks"):
        block_placement.optimize_placement(writes(), racks_each=5)
    with pytest.raises(InputError, match="must not be a multiple of the 5 racks"):
        block_placement.place_in_ring(writes(), shift=5)
