"""Every design on the same problems: plans are trees, limits that are claimed are kept, bounds hold."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.errors import InputError
from planner.proof import Status
from planner.run import evaluate
from planner.scenario import Entry
from planner_models.livevideo import (
    SYSTEM,
    LiveVideo,
    check,
    dns,
    everywhere,
    generate,
    measure,
    optimum,
)
from planner_models.livevideo.check import delivered
from planner_models.livevideo.designs import DESIGNS
from tests.livevideo.networks import problem, problems

QUICK = Options(time_limit_s=0.2, threads=1, gap=1e-3)


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


@given(st.integers(2, 5).flatmap(lambda tiers: problems(tiers=tiers, rules=True)))
@settings(max_examples=6)
def test_no_design_beats_the_optimum(one: LiveVideo) -> None:
    best = optimum.distribute(one).proof.objective
    assert best is not None
    for design in DESIGNS:
        plan = design.decide(design.sees(one), options=QUICK, previous=None).plan
        assert plan is not None
        assert not len(check(one, plan)), design.name
        worth = measure(one, plan, None)["service_minus_cost"]
        assert worth is not None
        assert worth <= best + 1e-9, design.name


REACTIVE = [design for design in DESIGNS if design.name not in ("vdn", "optimum", "centralized")]


def ruled(one: LiveVideo, table: str, *row: str) -> LiveVideo:
    frame = pd.DataFrame([row], columns=["channel", "bitrate_kbps", "tail", "head"])
    return replace(one, **{table: frame})  # type: ignore[arg-type]


@given(problems(tiers=4), st.integers(0, 99))
@settings(max_examples=5)
def test_pins_are_kept_or_said_to_be_impossible(one: LiveVideo, draw: int) -> None:
    """Every design serves what is pinned, on the link that is pinned; without a plan it says why."""
    row = one.requests.iloc[draw % len(one.requests)]
    item = (row["channel"], f"{row['bitrate_kbps']:g}")
    link = one.links.iloc[draw % len(one.links)]
    for rule in (("*", "*"), (link["tail"], link["head"])):
        try:
            pinned = ruled(one, "pinned", *item, *rule)
        except InputError:  # no way leads there: said before any design is asked
            continue
        possible = optimum.distribute(pinned).plan is not None
        for design in DESIGNS:
            decision = design.decide(design.sees(pinned), options=QUICK, previous=None)
            if not possible:
                claims = decision.keeps is None or "pinned" in decision.keeps
                assert decision.plan is None or not claims or design.name == "centralized", design.name
                continue
            if decision.plan is None:
                assert decision.proof.reasons, design.name
                assert design.name in ("hybrid",), design.name
            elif design.name != "centralized":  # which may not know of the request yet
                assert not len(check(pinned, decision.plan)), design.name


def test_a_pin_that_does_not_fit_is_one_line() -> None:
    one = problem(
        [("S", "E", 1.0, 1.0), ("E", "A", 5.0, 0.0), ("E", "B", 5.0, 0.0)],
        [("v", 1000.0, 1.0), ("w", 1000.0, 1.0)],
        [("A", "v", 1000.0, 1.0), ("B", "w", 1000.0, 1.0)],
        tiers={"S": "source", "E": "edge", "A": "group", "B": "group"},
    )
    tight = ruled(one, "pinned", "*", "*", "*", "*")
    for design in REACTIVE:
        if design.name == "hybrid":
            continue
        decision = design.decide(design.sees(tight), options=QUICK, previous=None)
        assert decision.plan is None, design.name
        assert decision.proof.status is Status.INFEASIBLE
        assert decision.proof.reasons[0] == (
            "pinned: the streams that must be carried do not fit on the links together"
        )


def test_forbidden_links_are_empty_under_every_design() -> None:
    one = generate.heavy_tail(
        videos=60, groups=60, edges=20, requests_per_video=1.5, source_gbps=0.5, sources=2, reflectors=3,
        reflectors_per_edge=2,
    )  # fmt: skip
    closed = ruled(one, "forbidden", "*", "*", "S1", "*")
    for design in DESIGNS:
        if design.name == "optimum":
            continue
        plan = design.decide(design.sees(closed), options=QUICK, previous=None).plan
        assert plan is not None
        assert len(plan.trees)
        assert "S1" not in set(plan.trees["tail"]), design.name


def narrow() -> LiveVideo:
    """Two ways to an edge, of which the first to be taken is the wider; a second bitrate of v comes after."""
    return problem(
        [("S", "X", 3.0, 1.0), ("S", "Y", 2.5, 1.0), ("X", "E", 3.0, 1.0), ("Y", "E", 2.5, 1.0),
         ("E", "A", 9.0, 0.0)],
        [("v", 2000.0, 1.0), ("v", 1500.0, 1.0), ("w", 1000.0, 1.0)],
        [("A", "v", 2000.0, 1.0), ("A", "v", 1500.0, 1.0)],
        tiers={"S": "source", "X": "reflector", "Y": "reflector", "E": "edge", "A": "group"},
    )  # fmt: skip


def test_a_kept_answer_locks_a_channel_in() -> None:
    """For 30 s DNS sends all of v over X, which is full by then; 31 s later it is asked again."""
    for arrival, served in ((10.0, 1), (31.0, 2)):
        one = narrow()
        one = one.with_requests(one.requests.assign(arrival_s=[0.0, arrival]))
        plan = dns.distribute(one).plan
        assert plan is not None
        assert delivered(one, plan).served.sum() == served
        fresh = dns.distribute_1s(one).plan
        assert fresh is not None
        assert delivered(one, fresh).served.sum() == 2


def test_old_measurements_mislead() -> None:
    """With room as it was a minute ago both go the way that was wider, and the second does not fit."""
    one = narrow()
    asked = pd.DataFrame({"group": "A", "channel": ["v", "w"], "bitrate_kbps": [2500.0, 1000.0],
                          "arrival_s": [0.0, 5.0]})  # fmt: skip
    objects = pd.DataFrame({"channel": ["v", "w"], "bitrate_kbps": [2500.0, 1000.0]})
    one = replace(one, objects=objects, requests=asked)
    for monitor_s, served in ((0.0, 2), (60.0, 1)):
        plan = dns.distribute(one, monitor_s=monitor_s).plan
        assert plan is not None
        assert delivered(one, plan).served.sum() == served


def test_everything_goes_out_in_the_order_of_the_table() -> None:
    one = problem(
        [("S", "E", 2.0, 1.0), ("E", "A", 9.0, 0.0)],
        [("v", 2000.0, 1.0), ("w", 1500.0, 1.0)],
        [("A", "v", 2000.0, 1.0), ("A", "w", 1500.0, 1.0)],
        tiers={"S": "source", "E": "edge", "A": "group"},
    )
    plan = everywhere.distribute(one, order="table").plan
    assert plan is not None
    assert set(plan.trees["channel"]) == {"v"}


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
