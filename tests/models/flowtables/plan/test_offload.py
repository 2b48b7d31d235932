"""Entries in a network card: brute force over all selections, the bound, and the check."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from planner.errors import InputError, PlanRejected
from planner_models.flowtables import SYSTEM, check, measure
from planner_models.flowtables.plan.offload import Candidates, Limits, choose_offload
from planner_models.flowtables.problem.generators import small


def draw(random: np.random.Generator, count: int, masks: int) -> Candidates:
    """Return entries with few popular ones."""
    return Candidates(
        np.floor(random.pareto(1.0, count) * 10 + 1),
        random.integers(0, masks, count),
        random.integers(1, 5, count).astype(float),
    )


def is_within(candidates: Candidates, limits: Limits, rows: np.ndarray) -> bool:
    return (
        len(rows) <= limits.entries
        and len(set(candidates.mask_of[rows].tolist())) <= limits.masks
        and float(candidates.inserts[rows].sum()) <= limits.inserts
    )


@pytest.mark.parametrize("seed", range(40))
def test_no_selection_beats_the_bound_and_few_beat_ours(seed: int) -> None:
    """All subsets of 11 entries: the best is within the bound, and ours within 10% of it."""
    random = np.random.default_rng(seed)
    candidates = draw(random, 11, 4)
    limits = Limits(
        int(random.integers(1, 8)), int(random.integers(1, 5)), float(random.choice([np.inf, 6.0, 12.0]))
    )
    best = max(
        float(candidates.saved[list(rows)].sum())
        for size in range(limits.entries + 1)
        for rows in combinations(range(11), size)
        if is_within(candidates, limits, np.array(rows, dtype=int))
    )
    offload = choose_offload(candidates, limits)
    assert is_within(candidates, limits, offload.rows)
    assert offload.saved == candidates.saved[offload.rows].sum()
    assert offload.saved <= best <= offload.bound
    assert offload.saved >= 0.9 * best


def test_without_a_limit_of_masks_the_selection_is_the_best() -> None:
    candidates = draw(np.random.default_rng(3), 500, 30)
    offload = choose_offload(candidates, Limits(50, 500, np.inf))
    assert offload.saved == offload.bound == np.sort(candidates.saved)[-50:].sum()
    assert choose_offload(candidates, Limits(1_000, 1_000, np.inf)).saved == candidates.saved.sum()


def test_the_plan_holds_the_card_and_its_check_counts_again() -> None:
    problem = small().with_costs(nic_entries=4.0, nic_masks=2.0)
    plan = SYSTEM.design("all").run(problem).plan
    assert plan is not None
    assert len(plan.offload) <= 4
    assert not len(check(problem, plan))
    measured = measure(problem, plan, None)
    assert 0 < measured["offloaded"] <= 100
    assert 0 < measured["lookups_saved"] <= 100
    inflated = replace(plan, offload=plan.offload.assign(lookups=plan.offload["lookups"] + 1))
    assert set(check(problem, inflated).frame["limit"]) == {"offload"}
    smaller = problem.with_costs(nic_entries=1.0, nic_masks=1.0)
    assert "nic_entries" in set(check(smaller, plan).frame["limit"])
    other = replace(plan, offload=plan.offload.assign(match="ip_src=9.9.9.9"))
    with pytest.raises(PlanRejected, match=r"offload row 1: match 'ip_src=9\.9\.9\.9' is no entry of mega"):
        check(problem, other)


def test_entries_that_expire_are_inserted_again() -> None:
    problem = small()
    start_s = np.repeat(np.arange(len(problem.flows) / 2), 2)[: len(problem.flows)] * 100.0
    flows = problem.flows.assign(start_s=start_s)
    timed = replace(problem, flows=flows).with_costs(nic_entries=9.0, nic_inserts_per_s=0.01)
    plan = SYSTEM.design("all").run(timed).plan
    assert plan is not None
    assert plan.offload["inserts"].max() > 1
    assert plan.offload["inserts"].sum() <= 0.01 * timed.duration_s
    assert not len(check(timed, plan))
    with pytest.raises(
        InputError, match=r"start_s is missing; costs\.nic_inserts_per_s limits the insertions"
    ):
        problem.with_costs(nic_entries=9.0, nic_inserts_per_s=1.0)
