"""Every design on the same problems: plans are trees, limits that are claimed are kept, bounds hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from planner import Options
from planner.run import evaluate
from planner.scenario import Entry
from planner_models.livevideo import SYSTEM, LiveVideo, generate, measure, optimum
from planner_models.livevideo.designs import DESIGNS
from tests.livevideo.networks import problems

QUICK = Options(time_limit_s=0.5, threads=1, gap=1e-3)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_every_design_passes_the_engine(design: object) -> None:
    one = generate.heavy_tail(
        videos=60,
        groups=120,
        edges=30,
        requests_per_video=1.5,
        source_gbps=0.5,
        sources=2,
        reflectors=3,
        reflectors_per_edge=2,
    )
    entry = Entry(label=design.name, design=design)  # type: ignore[attr-defined, arg-type]
    run = evaluate(
        SYSTEM,
        one,
        entry,
        options=Options(time_limit_s=3, threads=1, gap=1e-3)
        if entry.label != "optimum"
        else Options(time_limit_s=5, gap=0.01),
    )
    assert run.plan is not None
    assert not len(run.violations)
    assert run.metrics["clients_at_bitrate"] > 0  # type: ignore[operator]


@given(problems(rules=True))
@settings(max_examples=6)
def test_no_design_beats_the_optimum(one: LiveVideo) -> None:
    best = optimum.distribute(one).proof.objective
    assert best is not None
    for design in DESIGNS:
        plan = design.decide(design.sees(one), options=QUICK, previous=None).plan
        assert plan is not None
        worth = measure(one, plan, None)["service_minus_cost"]
        assert worth is not None
        assert worth <= best + 1e-9, design.name


def test_calibration() -> None:
    """What 4.7.1 states of the traces: mean bitrates, and how heavy head and tail are."""
    tail = generate.heavy_tail(videos=10_000, requests_per_video=8.0)
    rate = tail.bitrate_mbps[tail.object]
    assert (tail.clients @ rate) / tail.clients.sum() == pytest.approx(6.85, rel=0.03)
    head = tail.requests["channel"].str[1:].astype(int) <= 100
    assert tail.clients[head].sum() / tail.clients.sum() == pytest.approx(0.4, abs=0.01)
    day = generate.average_day(requests_per_video=13.0)
    head = day.requests["channel"].str[1:].astype(int) <= 290
    assert day.clients[head].sum() / day.clients.sum() == pytest.approx(0.5, abs=0.01)
    assert day.capacity_mbps[day.level[day.tail] == 0].sum() == pytest.approx(4_000)
    assert day.capacity_mbps[day.level[day.tail] == 1].sum() == pytest.approx(30_000)
    core = day.cost[day.level[day.tail] < 2]
    assert core.min() >= 10
    assert core.max() <= 50
    edge = day.cost[day.level[day.tail] == 2]
    assert (edge == 0).mean() == pytest.approx(0.5, abs=0.001)
    assert edge[edge > 0].min() >= 1
    assert edge.max() <= 5
