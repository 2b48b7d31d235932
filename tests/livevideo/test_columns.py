"""The decomposition: its bound holds, its plan fits, and both meet where the problem is small."""

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
from planner.errors import InputError
from planner.proof import Status
from planner_models.livevideo import LiveVideo, check, columns, generate, measure, optimum
from planner_models.livevideo import layers as arrays
from planner_models.livevideo.program import build
from tests.livevideo.networks import problems

QUICK = Options(time_limit_s=0.3, threads=1, gap=1e-6)


@given(st.integers(2, 4).flatmap(lambda tiers: problems(tiers=tiers, rules=True)))
@settings(max_examples=12)
def test_bound_optimum_and_plan_are_in_order(one: LiveVideo) -> None:
    best = optimum.distribute(one).proof.objective
    found = columns.distribute(one, options=QUICK)
    assert best is not None
    assert found.plan is not None
    assert found.proof.bound is not None
    assert found.proof.objective is not None
    assert found.proof.objective <= best + 1e-9 <= found.proof.bound + 2e-9
    assert not len(check(one, found.plan))
    assert measure(one, found.plan, None)["service_minus_cost"] == pytest.approx(found.proof.objective)


@given(problems(rules=True), st.sampled_from([1e-6, 1e-3]))
@settings(max_examples=12)
def test_without_time_there_is_still_a_plan_and_a_bound(one: LiveVideo, limit_s: float) -> None:
    best = optimum.distribute(one).proof.objective
    found = columns.distribute(one, options=Options(time_limit_s=limit_s, threads=1))
    assert best is not None
    assert found.plan is not None
    assert not len(check(one, found.plan))
    assert found.proof.bound is not None
    assert best <= found.proof.bound + 1e-9


@given(problems())
@settings(max_examples=10)
def test_it_comes_close_on_small_problems(one: LiveVideo) -> None:
    best = optimum.distribute(one).proof.objective
    found = columns.distribute(one, options=QUICK).proof.objective
    assert best is not None
    assert found is not None
    assert found >= 0.9 * best - 1e-9


@given(problems())
@settings(max_examples=6)
def test_small_problems_are_solved_to_the_end(one: LiveVideo) -> None:
    best = optimum.distribute(one).proof.objective
    found = columns.distribute(one, options=Options(time_limit_s=30, threads=1, gap=1e-6)).proof
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(best, rel=1e-5)


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


def test_the_plan_is_a_point_of_the_explicit_program() -> None:
    one = generate.heavy_tail(
        videos=300, requests_per_video=2.0, source_gbps=0.5, sources=1, reflectors=4, groups=300, seed=3
    )
    decision = columns.distribute(one, options=Options(time_limit_s=2, threads=1))
    assert decision.plan is not None
    fast = build(one)
    x = fast.point(one, decision.plan)
    assert fast.program.violation(x) <= 1e-9
    assert fast.program.objective_of(x) == pytest.approx(decision.proof.objective)
    assert decision.proof.gap is not None
    assert decision.proof.gap < 0.03


def test_the_same_seed_gives_the_same_plan_with_one_thread_or_two() -> None:
    one = generate.heavy_tail(
        videos=120, requests_per_video=4.0, source_gbps=0.3, sources=2, reflectors=3, groups=150, edges=30,
        reflectors_per_edge=2, seed=5,
    )  # fmt: skip
    found = [
        columns.distribute(one, options=Options(time_limit_s=60, threads=threads, gap=0.02, seed=3))
        for threads in (1, 2, 2)
    ]
    first = found[0]
    assert first.plan is not None
    assert first.proof.gap is not None
    assert first.proof.gap <= 0.02
    for other in found[1:]:
        assert other.plan is not None
        assert other.plan.trees.equals(first.plan.trees)
        assert other.proof.bound == first.proof.bound


def test_the_next_window_starts_from_the_last_prices() -> None:
    one = generate.heavy_tail(
        videos=200, requests_per_video=2.0, source_gbps=0.3, sources=2, reflectors=3, groups=200, edges=40,
        reflectors_per_edge=2, seed=4,
    )  # fmt: skip
    last = columns.distribute(one, options=Options(time_limit_s=300, threads=1, gap=0.01))
    assert isinstance(last, columns.Priced)
    assert last.prices
    requests = one.requests.drop(index=one.requests.index[::50])
    following = one.with_requests(requests)
    again = columns.distribute(
        following, options=Options(time_limit_s=300, threads=1, gap=0.012), previous=last
    )
    assert again.plan is not None
    assert not len(check(following, again.plan))
    assert again.proof.gap is not None
    assert again.proof.gap <= 0.012


def test_pins_are_kept_where_they_can_be() -> None:
    one = generate.heavy_tail(
        videos=40, requests_per_video=2.0, source_gbps=0.2, sources=2, reflectors=2, reflectors_per_edge=2,
        groups=120, edges=20, seed=2,
    )  # fmt: skip
    o = int(one.object[0])
    channel = one.objects["channel"].iloc[o]
    core = one.links.index[one.links["tail"] == "S2"][0]
    rules = pd.DataFrame(
        [
            (channel, f"{one.objects['bitrate_kbps'].iloc[o]:g}", "*", "*"),
            (channel, f"{one.objects['bitrate_kbps'].iloc[o]:g}", "S2", one.links["head"][core]),
        ],
        columns=["channel", "bitrate_kbps", "tail", "head"],
    )
    pinned = replace(one, pinned=rules)
    for decision in (
        columns.distribute(pinned, options=Options(time_limit_s=1.5, threads=1)),
        optimum.distribute(pinned, options=Options(time_limit_s=20, gap=0.01)),
    ):
        assert decision.plan is not None
        assert not len(check(pinned, decision.plan))
    bound = columns.distribute(pinned, options=Options(time_limit_s=1.5, threads=1)).proof.bound
    best = optimum.distribute(pinned, options=Options(time_limit_s=20, gap=0.01)).proof.objective
    assert bound is not None
    assert best is not None
    assert best <= bound + 1e-9


@given(problems(rules=True))
@settings(max_examples=15)
def test_a_plan_survives_the_way_through_the_layers(one: LiveVideo) -> None:
    plan = optimum.distribute(one).plan
    assert plan is not None
    layers = arrays.of(one)
    again = layers.plan(layers.choice(plan))
    assert again.trees.equals(plan.trees)


def test_nobody_asks() -> None:
    one = generate.ec2_testbed(videos=2)
    idle = one.with_requests(one.requests.iloc[:0])
    assert columns.distribute(idle).proof.objective == 0.0
    assert optimum.distribute(idle).proof.objective == 0.0


def test_another_backend_is_refused() -> None:
    with pytest.raises(InputError, match="'vdn' is a solver of its own, leave it out"):
        columns.distribute(generate.ec2_testbed(videos=2), options=Options(backend="ortools"))


def test_no_time_limit_pays_for_compilation() -> None:
    """What `get_ready` has called is all that a run calls, in one thread or two, cold or warm."""
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "none"


RUN = """
import numba.core.dispatcher
from planner import Options
from planner_models.livevideo import columns, compiled, dive, eviction, mixing, packing, placing, pricing
from benchmarks.livevideo_scale import QUICK, changed

def compiled_for():
    found = {}
    for module in (dive, eviction, mixing, packing, placing, pricing):
        for name, kernel in vars(module).items():
            if isinstance(kernel, numba.core.dispatcher.Dispatcher) and kernel.signatures:
                found[kernel.py_func.__name__] = set(kernel.signatures)
    return found

compiled.get_ready()
before = compiled_for()
one = QUICK.make(0)
last = columns.distribute(one, options=Options(time_limit_s=3.0, gap=1e-9, threads=2))
following, options = changed(one, 0.1, 0), Options(time_limit_s=2.0, gap=1e-9, threads=1)
columns.distribute(following, options=options, previous=last)
columns.distribute(following, most_moved=3, options=options, previous=last)
assert before
print([name for name, found in compiled_for().items() if before.get(name) != found] or "none")
"""
