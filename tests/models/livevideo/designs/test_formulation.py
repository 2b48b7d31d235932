"""The formal model, the sparse program and complete enumeration have the same optimum."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner.options import Options
from planner_models.livevideo import LiveVideo, check, measure
from planner_models.livevideo.designs import optimum
from planner_models.livevideo.designs.integer_program import build_program
from tests.models.livevideo.networks import best_by_force, problem, problems

TWO = {"S": "source", "X": "reflector", "Y": "reflector", "A": "group", "B": "group"}


@given(problems(rules=True))
@settings(max_examples=6)
def test_the_formal_model_and_the_fast_one_agree(one: LiveVideo) -> None:
    fast = optimum.distribute(one)
    formal = optimum.distribute(one, options=Options(backend="pyomo:highs"))
    assert fast.proof.status is formal.proof.status is Status.OPTIMAL
    assert fast.proof.objective == pytest.approx(formal.proof.objective, abs=1e-6)


@given(problems(), st.sampled_from(["ortools:cp-sat", "ortools:scip"]))
@settings(max_examples=6)
def test_other_backends_agree(one: LiveVideo, backend: str) -> None:
    assert optimum.distribute(one, options=Options(backend=backend)).proof.objective == pytest.approx(
        optimum.distribute(one).proof.objective, abs=1e-6
    )


@pytest.mark.slow
def test_the_optimum_equals_complete_enumeration() -> None:
    rng = np.random.default_rng(5)
    for _ in range(2):
        links = [
            (tail, head, float(rng.integers(1, 3)), float(rng.integers(0, 5)))
            for tail, head in [("S", "X"), ("S", "Y"), ("X", "A"), ("X", "B"), ("Y", "A"), ("Y", "B")]
        ]
        item = problem(
            links,
            [("v", 1000.0, 1.0), ("w", 1000.0, 2.0)],
            [("A", "v", 1000.0, 1.0), ("B", "v", 1000.0, 2.0), ("B", "w", 1000.0, 1.0)],
            tiers=TWO,
            settings=pd.DataFrame({"service_weight": [1.0], "cost_weight": [0.1]}),
        )
        assert optimum.distribute(item).proof.objective == pytest.approx(best_by_force(item), abs=1e-9)


def coordination(third: bool = False) -> LiveVideo:
    """Two channels and three candidate trees (4.2.3), with numbers of our own."""
    links = [
        ("S", "X", 1.0, 1.0),
        ("S", "Y", 2.0, 1.0),
        ("X", "A", 1.0, 1.0),
        ("Y", "A", 1.0, 0.5),
        ("Y", "B", 1.0, 1.0),
    ]
    requests = [("A", "V1", 1000.0, 1.0), ("B", "V2", 1000.0, 1.0)]
    if third:
        requests.append(("A", "V2", 1000.0, 1.0))
    return problem(
        links, [("V1", 1000.0, 1.0), ("V2", 1000.0, 1.0)], requests, tiers=TWO,
        settings=pd.DataFrame({"service_weight": [1.0], "cost_weight": [0.01]}),
    )  # fmt: skip


def test_one_channel_makes_way_for_the_other() -> None:
    """With SY of one channel only, V1 must take the more expensive path over X so that V2 fits."""
    item = coordination()
    tight = LiveVideo(
        clusters=item.clusters, objects=item.objects, requests=item.requests, settings=item.settings,
        links=item.links.assign(capacity_mbps=[1.0, 1.0, 1.0, 1.0, 1.0]),
    )  # fmt: skip
    plan = optimum.distribute(tight).plan
    assert plan is not None
    assert measure(tight, plan, None)["clients_at_bitrate"] == 100.0
    used = {(row.channel, row.tail, row.head) for row in plan.trees.itertuples()}
    assert used == {("V1", "S", "X"), ("V1", "X", "A"), ("V2", "S", "Y"), ("V2", "Y", "B")}


def test_a_high_priority_justifies_the_expensive_link() -> None:
    """The example of 4.5: YA costs 10 and stays idle until a stream of priority 100 needs it."""
    links = [
        ("S", "X", 0.9, 1.0),
        ("S", "Y", 2.0, 1.0),
        ("X", "A", 0.9, 1.0),
        ("Y", "A", 2.0, 10.0),
        ("Y", "B", 2.0, 1.0),
    ]
    objects = [("V1", 200.0, 1.0), ("V1", 800.0, 1.0), ("V2", 300.0, 1.0), ("V2", 900.0, 100.0)]
    first = [("A", "V1", 800.0, 1.0), ("B", "V1", 800.0, 1.0)]
    settings = pd.DataFrame({"service_weight": [10.0], "cost_weight": [1.0]})
    before = problem(links, objects, first, tiers=TWO, settings=settings)
    after = problem(links, objects, [*first, ("A", "V2", 900.0, 1.0)], tiers=TWO, settings=settings)
    item, two = optimum.distribute(before), optimum.distribute(after)
    assert item.plan is not None
    assert two.plan is not None
    # 20 for service, less 0.8 x (SX + XA + SY + YB)
    assert item.proof.objective == pytest.approx(20 - 0.8 * 4)
    assert not ((item.plan.trees["tail"] == "Y") & (item.plan.trees["head"] == "A")).any()
    # V1 to A over YA shares SY; V2 takes SX and XA: 1020 - 0.8 (SY + YA + YB) - 0.9 (SX + XA)
    assert two.proof.objective == pytest.approx(1020 - 0.8 * 12 - 0.9 * 2)
    assert ((two.plan.trees["tail"] == "Y") & (two.plan.trees["head"] == "A")).any()


def test_whole_streams_beat_fair_shares() -> None:
    """Fig. 4.6: 400 and 1,500 kbit/s over a link of 1,900: by bitrate, one high and one low beat two low."""
    links = [("S", "X", 1.9, 0.0), ("X", "A", 9.0, 0.0), ("X", "B", 9.0, 0.0)]
    objects = [(c, b, b / 1000) for c in ("V1", "V2") for b in (400.0, 1500.0)]
    requests = [(g, c, b, 1.0) for g, c in (("A", "V1"), ("B", "V2")) for b in (400.0, 1500.0)]
    item = problem(links, objects, requests, tiers=TWO)
    assert optimum.distribute(item).proof.objective == pytest.approx(1.9)


def test_plans_satisfy_pinned_and_forbidden_rules() -> None:
    item = coordination(third=True)
    rules = ["channel", "bitrate_kbps", "tail", "head"]
    pinned = LiveVideo(
        clusters=item.clusters, links=item.links, objects=item.objects,
        requests=item.requests, settings=item.settings,
        pinned=pd.DataFrame([("V1", "*", "X", "A")], columns=rules),
        forbidden=pd.DataFrame([("*", "*", "Y", "A")], columns=rules),
    )  # fmt: skip
    plan = optimum.distribute(pinned).plan
    assert plan is not None
    assert not len(check(pinned, plan))
    assert set(plan.trees.loc[plan.trees["head"] == "A", "tail"]) == {"X"}


def test_pins_that_do_not_fit_are_infeasible() -> None:
    item = coordination()
    rules = ["channel", "bitrate_kbps", "tail", "head"]
    pinned = LiveVideo(
        clusters=item.clusters, links=item.links.assign(capacity_mbps=[1.0, 1.0, 1.0, 1.0, 1.0]),
        objects=item.objects, requests=item.requests, settings=item.settings,
        pinned=pd.DataFrame([("V1", "*", "Y", "A"), ("V2", "*", "Y", "B")], columns=rules),
    )  # fmt: skip
    assert optimum.distribute(pinned).proof.status is Status.INFEASIBLE


def test_a_plan_is_a_feasible_point_with_the_same_objective() -> None:
    item = coordination()
    decision = optimum.distribute(item)
    assert decision.plan is not None
    fast = build_program(item)
    x = fast.point(item, decision.plan)
    assert fast.program.violation(x) == 0
    assert fast.program.objective_of(x) == pytest.approx(decision.proof.objective)
