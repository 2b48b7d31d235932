"""The decomposition: its bound holds, its plan is feasible, and both meet on small problems."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.contract.proof import Status
from planner.errors import InputError
from planner_models.livevideo import LiveVideo, check, measure
from planner_models.livevideo.designs import optimum
from planner_models.livevideo.designs.decomposition import decomposition
from planner_models.livevideo.designs.decomposition.layered_problem import build_layers
from planner_models.livevideo.designs.integer_program import build_program
from planner_models.livevideo.plan.plan import PricedDecision
from planner_models.livevideo.problem import generators
from tests.models.livevideo.networks import problems

QUICK = Options(time_limit_s=0.3, threads=1, gap=1e-6)


@pytest.mark.slow
@given(st.integers(2, 4).flatmap(lambda tiers: problems(tiers=tiers, rules=True)))
@settings(max_examples=5)
def test_bound_optimum_and_plan_are_in_order(one: LiveVideo) -> None:
    best = optimum.distribute(one).proof.objective
    decision = decomposition.distribute(one, options=QUICK)
    assert best is not None
    assert decision.plan is not None
    assert decision.proof.bound is not None
    assert decision.proof.objective is not None
    assert decision.proof.objective <= best + 1e-9 <= decision.proof.bound + 2e-9
    assert not len(check(one, decision.plan))
    assert measure(one, decision.plan, None)["service_minus_cost"] == pytest.approx(decision.proof.objective)


@pytest.mark.slow
@given(problems(rules=True), st.sampled_from([1e-6, 1e-3]))
@settings(max_examples=12)
def test_without_time_there_is_still_a_plan_and_a_bound(one: LiveVideo, limit_s: float) -> None:
    best = optimum.distribute(one).proof.objective
    decision = decomposition.distribute(one, options=Options(time_limit_s=limit_s, threads=1))
    assert best is not None
    assert decision.plan is not None
    assert not len(check(one, decision.plan))
    assert decision.proof.bound is not None
    assert best <= decision.proof.bound + 1e-9


@given(problems())
@settings(max_examples=10)
def test_a_short_run_is_close_to_the_optimum_of_small_problems(one: LiveVideo) -> None:
    best = optimum.distribute(one).proof.objective
    result = decomposition.distribute(one, options=QUICK).proof.objective
    assert best is not None
    assert result is not None
    assert result >= 0.9 * best - 1e-9


@given(problems())
@settings(max_examples=6)
def test_small_problems_are_solved_to_optimality(one: LiveVideo) -> None:
    best = optimum.distribute(one).proof.objective
    result = decomposition.distribute(one, options=Options(time_limit_s=30, threads=1, gap=1e-6)).proof
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=1e-5)


@given(problems(), st.integers(0, 100))
@settings(max_examples=10)
def test_more_capacity_never_lowers_the_optimum(one: LiveVideo, seed: int) -> None:
    rng = np.random.default_rng(seed)
    more = replace(
        one,
        links=one.links.assign(capacity_mbps=one.links["capacity_mbps"] + rng.integers(0, 3, len(one.links))),
    )
    after, before = optimum.distribute(more).proof.objective, optimum.distribute(one).proof.objective
    assert after is not None
    assert before is not None
    assert after >= before - 1e-9


@pytest.mark.slow
def test_the_plan_is_a_point_of_the_explicit_program() -> None:
    item = generators.heavy_tail(
        videos=300, requests_per_video=2.0, source_gbps=0.5, sources=1, reflectors=4, groups=300, seed=3
    )
    decision = decomposition.distribute(item, options=Options(time_limit_s=2, threads=1))
    assert decision.plan is not None
    fast = build_program(item)
    x = fast.point(item, decision.plan)
    assert fast.program.violation(x) <= 1e-9
    assert fast.program.objective_of(x) == pytest.approx(decision.proof.objective)
    assert decision.proof.gap is not None
    assert decision.proof.gap < 0.03


def test_the_same_seed_gives_the_same_plan_with_one_thread_or_two() -> None:
    item = generators.heavy_tail(
        videos=120, requests_per_video=4.0, source_gbps=0.3, sources=2, reflectors=3, groups=150, edges=30,
        reflectors_per_edge=2, seed=5,
    )  # fmt: skip
    result = [
        decomposition.distribute(item, options=Options(time_limit_s=60, threads=threads, gap=0.02, seed=3))
        for threads in (1, 2, 2)
    ]
    first = result[0]
    assert first.plan is not None
    assert first.proof.gap is not None
    assert first.proof.gap <= 0.02
    for other in result[1:]:
        assert other.plan is not None
        assert other.plan.trees.equals(first.plan.trees)
        assert other.proof.bound == first.proof.bound


def test_the_next_window_starts_from_the_last_prices() -> None:
    item = generators.heavy_tail(
        videos=200, requests_per_video=2.0, source_gbps=0.3, sources=2, reflectors=3, groups=200, edges=40,
        reflectors_per_edge=2, seed=4,
    )  # fmt: skip
    last = decomposition.distribute(item, options=Options(time_limit_s=300, threads=1, gap=0.01))
    assert isinstance(last, PricedDecision)
    assert last.prices
    requests = item.requests.drop(index=item.requests.index[::50])
    following = item.with_requests(requests)
    again = decomposition.distribute(
        following, options=Options(time_limit_s=300, threads=1, gap=0.012), previous=last
    )
    assert again.plan is not None
    assert not len(check(following, again.plan))
    assert again.proof.gap is not None
    assert again.proof.gap <= 0.012


def test_pins_that_can_be_met_are_met() -> None:
    item = generators.heavy_tail(
        videos=40, requests_per_video=2.0, source_gbps=0.2, sources=2, reflectors=2, reflectors_per_edge=2,
        groups=120, edges=20, seed=2,
    )  # fmt: skip
    o = int(item.object[0])
    channel = item.objects["channel"].iloc[o]
    core = item.links.index[item.links["tail"] == "S2"][0]
    rules = pd.DataFrame(
        [
            (channel, f"{item.objects['bitrate_kbps'].iloc[o]:g}", "*", "*"),
            (channel, f"{item.objects['bitrate_kbps'].iloc[o]:g}", "S2", item.links["head"][core]),
        ],
        columns=["channel", "bitrate_kbps", "tail", "head"],
    )
    pinned = replace(item, pinned=rules)
    for decision in (
        decomposition.distribute(pinned, options=Options(time_limit_s=1.5, threads=1)),
        optimum.distribute(pinned, options=Options(time_limit_s=20, gap=0.01)),
    ):
        assert decision.plan is not None
        assert not len(check(pinned, decision.plan))
    bound = decomposition.distribute(pinned, options=Options(time_limit_s=1.5, threads=1)).proof.bound
    best = optimum.distribute(pinned, options=Options(time_limit_s=20, gap=0.01)).proof.objective
    assert bound is not None
    assert best is not None
    assert best <= bound + 1e-9


@given(problems(rules=True))
@settings(max_examples=15)
def test_a_plan_becomes_paths_and_the_same_plan_again(one: LiveVideo) -> None:
    plan = optimum.distribute(one).plan
    assert plan is not None
    layered = build_layers(one)
    again = layered.to_plan(layered.paths_of(plan))
    assert again.trees.equals(plan.trees)


def test_without_requests_the_objective_is_zero() -> None:
    item = generators.ec2_testbed(videos=2)
    idle = item.with_requests(item.requests.iloc[:0])
    assert decomposition.distribute(idle).proof.objective == 0.0
    assert optimum.distribute(idle).proof.objective == 0.0


def test_another_backend_is_refused() -> None:
    with pytest.raises(InputError, match="'vdn' is a solver of its own, leave it out"):
        decomposition.distribute(generators.ec2_testbed(videos=2), options=Options(backend="ortools"))


@pytest.mark.slow
def test_no_time_limit_pays_for_compilation() -> None:
    """A run compiles nothing that `get_ready` has not, in one thread or two, cold or warm."""
    result = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "none"


RUN = """
from planner import Options
from planner.kernels import Kernel
from planner_models.livevideo.designs.decomposition import (
    decomposition, diving, ejection_chains, frank_wolfe, pricing, ruin_recreate
)
from benchmarks.livevideo_scale import QUICK, next_window

def compiled_signatures():
    found = {}
    for module in (decomposition, diving, ejection_chains, frank_wolfe, pricing, ruin_recreate):
        for name, kernel in vars(module).items():
            if isinstance(kernel, Kernel) and kernel.signatures:
                found[kernel.py_func.__name__] = set(kernel.signatures)
    return found

decomposition.get_ready()
before = compiled_signatures()
one = QUICK.make(0)
last = decomposition.distribute(one, options=Options(time_limit_s=3.0, gap=1e-9, threads=2))
following, options = next_window(one, 0.1, 0), Options(time_limit_s=2.0, gap=1e-9, threads=1)
decomposition.distribute(following, options=options, previous=last)
decomposition.distribute(following, most_moved=3, options=options, previous=last)
assert before
print([name for name, found in compiled_signatures().items() if before.get(name) != found] or "none")
"""
