"""Schedules of system `rotors` that repeat: nights, matchings that stay, failed racks, and an oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy.optimize import linear_sum_assignment, linprog

from planner_models.rotors import RotorNetwork, Routing, check, measure
from planner_models.rotors.designs import DESIGNS, demand_aware
from planner_models.rotors.designs.demand_aware import choose_steady, divide
from planner_models.rotors.problem.generators import TECHNOLOGIES, build, technologies
from tests.models.rotors.networks import most_by_any_route, networks

BY_NAME = {design.name: design for design in DESIGNS}
SCHEDULED = ("scheduled", "eclipse", "solstice")


def most_by_brute_force(problem: RotorNetwork) -> float:
    """Return the most direct traffic of all schedules that repeat: each set of matchings of each switch.

    A switch with one matching has no night, one with k >= 2 has k of them; lengths are a linear program.
    """
    racks, week, night = len(problem.racks), problem.week_us, problem.schedule_night_us
    rate = np.minimum.outer(*[problem.racks["circuit_mbps"].to_numpy(float)] * 2)
    demand = np.zeros((racks, racks))
    rows = problem.demands
    names = list(problem.racks["rack"])
    for source, target, mbps in rows[["source_rack", "target_rack", "rate_mbps"]].itertuples(index=False):
        demand[names.index(source), names.index(target)] += mbps
    perms = [np.array(perm) for perm in itertools.permutations(range(racks))]
    largest = int(week / night) if night > 0 else len(perms)
    sets = [(index,) for index in range(len(perms))]
    sets += [some for k in range(2, largest + 1) for some in itertools.combinations(range(len(perms)), k)]
    best = 0.0
    pairs = [(i, j) for i in range(racks) for j in range(racks) if demand[i, j] > 0]
    for selected in itertools.combinations_with_replacement(sets, problem.count):
        days = [(switch, item) for switch, some in enumerate(selected) for item in some]
        time = [week - (len(some) * night if len(some) > 1 else 0.0) for some in selected]
        if min(time) < 0:
            continue
        columns = len(days) + len(pairs)
        upper = np.zeros((len(pairs) + problem.count, columns))
        for row, (i, j) in enumerate(pairs):
            upper[row, len(days) + row] = 1.0
            for index, (_, item) in enumerate(days):
                upper[row, index] = -rate[i, j] / week * (perms[item][i] == j)
        for index, (switch, _) in enumerate(days):
            upper[len(pairs) + switch, index] = 1.0
        limits = [(0, None)] * len(days) + [(0, demand[pair]) for pair in pairs]
        cost = np.concatenate([np.zeros(len(days)), -np.ones(len(pairs))])
        solution = linprog(cost, A_ub=upper, b_ub=np.concatenate([np.zeros(len(pairs)), time]), bounds=limits)
        best = max(best, -float(solution.fun))
    return best


def tables(racks: str, switches: str, demands: str) -> RotorNetwork:
    """Return the network of tables whose rows are in lines, and whose values are apart by spaces."""

    def frame(text: str) -> pd.DataFrame:
        head, *rows = (line.split() for line in text.strip().splitlines())
        columns = dict(zip(head, zip(*rows, strict=True), strict=True))
        ends = ("rack", "source_rack", "target_rack")
        return pd.DataFrame({key: v if key in ends else list(map(float, v)) for key, v in columns.items()})

    return RotorNetwork(racks=frame(racks), switches=frame(switches), demands=frame(demands))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("count", "night_us"), [(1, 10.0), (1, 60.0), (2, 150.0)])
def test_schedules_are_the_best_that_repeat(seed: int, count: int, night_us: float) -> None:
    random = np.random.default_rng(seed)
    demand = random.choice([0.0, 10.0, 40.0, 90.0, 150.0], (3, 3))
    np.fill_diagonal(demand, 0.0)
    demand[0, 1] += 20.0
    rate = random.choice([50.0, 100.0], 3)
    problem = build(
        demand, rate, 0.0, count=count, day_us=100.0, night_us=10.0, schedule_night_us=night_us, week_us=400.0
    )
    upper = most_by_brute_force(problem)
    with pytest.MonkeyPatch.context() as patch:  # the bounds of problems that are too large for the program
        patch.setattr(demand_aware, "MAX_PROGRAM_CIRCUITS", 0)
        linear = BY_NAME["scheduled"].decide(problem).proof.bound
    assert linear is None or linear >= upper * (1 - 1e-6)
    for name in SCHEDULED:
        decision = BY_NAME[name].decide(problem)
        assert not len(check(problem, decision.plan)), check(problem, decision.plan).sentences()
        value = measure(problem, decision.plan, None)["delivered_mbps"]
        assert value is not None
        assert value <= upper * (1 + 1e-6)
        if name == "scheduled":
            assert decision.proof.bound is not None
            assert decision.proof.bound >= upper * (1 - 1e-6)
            assert value == pytest.approx(upper, rel=1e-5)


@pytest.mark.parametrize("racks", [4, 5])
def test_no_design_beats_several_switches_that_are_bounded(racks: int) -> None:
    """Some switches keep a matching and others do not: the linear bound holds for both."""
    random = np.random.default_rng(racks)
    demand = random.choice([0.0, 5.0, 60.0, 180.0], (racks, racks))
    np.fill_diagonal(demand, 0.0)
    rate = np.full(racks, 100.0)
    problem = build(
        demand, rate, 0.0, count=3, day_us=90.0, night_us=10.0, schedule_night_us=80.0, week_us=500.0
    )
    best = BY_NAME["scheduled"].decide(problem).proof
    _, steady_mbps = choose_steady(problem.demand_mbps, problem.link_mbps, 3)
    assert best.objective is not None
    assert best.bound is not None
    assert steady_mbps <= best.objective * (1 + 1e-9) <= best.bound * (1 + 1e-8)
    for name in ("eclipse", "solstice"):
        assert (BY_NAME[name].decide(problem).proof.objective or 0.0) <= best.objective * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_matchings_that_stay_are_best_for_ports_and_demands_of_many_decades(seed: int) -> None:
    """A fast port without demand hides none of the small demands, nor does a large demand on a slow port."""
    random = np.random.default_rng(seed)
    rate = np.array([1e9, 1e6, 1e-2, 1.0, 3.0])
    demand = 10.0 ** random.uniform(-3, 2, (5, 5))
    demand[2] = 1e8
    np.fill_diagonal(demand, 0.0)
    problem = build(demand, rate, 0.0, count=1, day_us=90.0, night_us=10.0, week_us=80.0)
    delivered = np.minimum(problem.demand_mbps, np.minimum.outer(rate, rate))  # rounded
    best = delivered[linear_sum_assignment(delivered, maximize=True)].sum()
    _, steady_mbps = choose_steady(problem.demand_mbps, problem.link_mbps, 1)
    assert steady_mbps == pytest.approx(best, rel=1e-9)
    decision = BY_NAME["scheduled"].decide(problem)
    assert decision.proof.objective >= best * (1 - 1e-9)
    assert decision.proof.bound >= decision.proof.objective


def test_one_matching_has_no_night() -> None:
    """One pair of 40 Mbit/s is up all the time: 40 is delivered, not 40 less a night in each week."""
    problem = tables(
        "rack circuit_mbps\nr0 100\nr1 40",
        "count day_us night_us\n1 1000 10",
        "source_rack target_rack rate_mbps\nr1 r0 91.3",
    )
    for name in SCHEDULED:
        decision = BY_NAME[name].decide(problem)
        assert decision.proof.objective == pytest.approx(40.0)
        times = decision.plan.circuits[["start_us", "end_us"]].drop_duplicates()
        assert times.to_numpy().tolist() == [[0.0, 1000.0]]
    assert BY_NAME["scheduled"].decide(problem).proof.bound == pytest.approx(40.0)


def test_a_night_longer_than_the_week_leaves_one_matching() -> None:
    problem = tables(
        "rack circuit_mbps\na 100\nb 100",
        "count day_us night_us\n1 90 100",
        "source_rack target_rack rate_mbps\na b 50\nb a 120",
    )
    for name in SCHEDULED:
        decision = BY_NAME[name].decide(problem)
        assert decision.proof.objective == pytest.approx(150.0)
        assert not len(check(problem, decision.plan))


@pytest.mark.slow
def test_days_without_nights_may_be_short() -> None:
    """Eclipse ends days as soon as a demand is served, here after a hundredth of a microsecond."""
    problem = tables(
        "rack circuit_mbps\na 100\nb 100\nc 100",
        "count day_us night_us schedule_night_us week_us\n1 90 10 0 5000",
        "source_rack target_rack rate_mbps\na b 49.9999\nb c 50\nc a 50.0001\na c 40\nc b 39.9998\nb a 40",
    )
    for design in DESIGNS:
        violations = check(problem, design.decide(problem).plan)
        assert not len(violations), (design.name, violations.sentences())


def test_failed_racks_have_no_circuits() -> None:
    problem = tables(
        "rack circuit_mbps failed\nr0 100 0\nr1 40 1\nr2 100 0",
        "count day_us night_us schedule_night_us\n2 180 10 100",
        "source_rack target_rack rate_mbps\nr0 r1 81.9\nr0 r2 60\nr1 r0 10\nr1 r2 60\nr2 r1 60",
    )
    for design in DESIGNS:
        decision = design.decide(problem)
        assert not len(check(problem, decision.plan)), design.name
        assert decision.proof.objective == pytest.approx(60.0)


@pytest.mark.parametrize("seed", range(5))
def test_matchings_that_stay_divide_all_circuits(seed: int) -> None:
    random = np.random.default_rng(seed)
    racks, count = int(random.integers(2, 7)), int(random.integers(1, 6))
    switches = sum(
        (np.eye(racks, dtype=np.int64)[random.permutation(racks)] for _ in range(count)),
        np.zeros((racks, racks), dtype=np.int64),
    )
    switches = np.minimum(switches, random.integers(0, 3, switches.shape))
    total = np.zeros_like(switches)
    for matching in divide(switches, count):
        source = np.flatnonzero(matching >= 0)
        assert len(set(matching[source])) == len(source)
        total[source, matching[source]] += 1
    assert (total == switches).all()


def test_relays_deliver_what_no_direct_circuit_of_a_kept_matching_does() -> None:
    """One switch without time for a night keeps a ring; what it does not connect goes round it."""
    problem = tables(
        "rack circuit_mbps\na 100\nb 100\nc 100",
        "count day_us night_us schedule_night_us week_us\n1 90 10 50 60",
        "source_rack target_rack rate_mbps\na b 60\nb c 60\nc a 60\na c 30",
    )
    direct = BY_NAME["scheduled"].decide(problem)
    relayed = BY_NAME["indirect"].decide(problem)
    assert direct.proof.objective == pytest.approx(180)
    assert relayed.proof.objective == pytest.approx(210)  # 30 by way of b, over links of 100
    assert [via for via in relayed.plan.routes["via"] if via] == ["b"]
    assert not len(check(problem, relayed.plan))


@settings(max_examples=8, deadline=None)
@given(problem=networks(most_racks=4))
def test_indirect_schedules_are_the_optimum_over_their_circuits_and_no_worse_than_direct(
    problem: RotorNetwork,
) -> None:
    decision = BY_NAME["indirect"].decide(problem)
    assert not len(check(problem, decision.plan))
    best = BY_NAME["scheduled"].decide(problem).proof.objective
    assert decision.proof.objective >= best * (1 - 1e-9)
    capacity = mean_of_circuits(problem, decision.plan)
    assert decision.proof.objective <= most_by_any_route(capacity, problem.demand_mbps) * (1 + 1e-6)
    assert decision.proof.objective == pytest.approx(
        most_by_two_links(capacity, problem.demand_mbps), rel=1e-5
    )


def mean_of_circuits(problem: RotorNetwork, plan: Routing) -> np.ndarray:
    """Return the (n, n) mean capacity of the circuits of a plan, Mbit/s, from its tables alone."""
    names = list(problem.racks["rack"])
    rate = problem.racks["circuit_mbps"].to_numpy(float)
    capacity = np.zeros((len(names), len(names)))
    period = float(plan.period["period_us"].iloc[0])
    for row in plan.circuits.itertuples():
        i, j = names.index(row.source_rack), names.index(row.target_rack)
        capacity[i, j] += min(rate[i], rate[j]) * (row.end_us - row.start_us) / period
    return capacity


def most_by_two_links(capacity: np.ndarray, demand: np.ndarray) -> float:
    """Return the most that paths of one or two links deliver, by a linear program over all of them."""
    racks = range(len(demand))
    paths = [
        (i, via, j) for i in racks for j in racks for via in racks if i != j and via != j and demand[i, j] > 0
    ]
    upper = np.zeros((2 * len(demand) ** 2, len(paths)))
    for column, (i, via, j) in enumerate(paths):
        upper[i * len(demand) + j, column] = 1.0
        for tail, head in [(i, j)] if via == i else [(i, via), (via, j)]:
            upper[len(demand) ** 2 + tail * len(demand) + head, column] = 1.0
    limits = np.concatenate([demand.ravel(), capacity.ravel()])
    return -float(linprog(-np.ones(len(paths)), A_ub=upper, b_ub=limits).fun)


def test_technologies_have_one_demand_and_their_own_circuits() -> None:
    problems = {name: technologies(technology=name, racks=6, load=0.5) for name in TECHNOLOGIES}  # type: ignore[arg-type]
    first = problems["optical_us"]
    for name, problem in problems.items():
        made = TECHNOLOGIES[name]
        assert problem.demand_mbps == pytest.approx(first.demand_mbps, abs=2e-3)
        assert problem.circuit_mbps.max() == made.circuit_mbps
        assert problem.night_us == problem.schedule_night_us == made.night_us
        assert problem.day_us == pytest.approx(9 * made.night_us)
        assert problem.week_us == 15_000
    assert first.demand_mbps.sum(axis=1) == pytest.approx(np.full(6, 0.5 * 3 * 10_000), abs=0.1)
    assert delivered_share(first) > delivered_share(problems["optical_ms"])


def delivered_share(problem: RotorNetwork) -> float:
    """Return the share of the demand that the best schedule delivers."""
    proof = BY_NAME["scheduled"].decide(problem).proof
    assert proof.objective is not None
    return proof.objective / float(problem.demand_mbps.sum())
