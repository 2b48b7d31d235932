"""Corrupted plans: rejected, or reported with the amounts of violations."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.design import Decision, Design, Mechanism
from planner.contract.proof import Proof, Status
from planner.errors import InputError, PlanRejected
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Routing, Traffic, check
from planner_models.traffic.designs import ecmp
from planner_models.traffic.designs.optimum import optimum
from tests.models.traffic.networks import network, problems

CHAIN = network([("a", "b", 10.0), ("b", "c", 10.0), ("a", "c", 4.0)], [("a", "c", 6.0), ("b", "c", 3.0)])
RATES = (1e-6, 1.0, 1e9)


def plan() -> Routing:
    """Return a plan with 6 from a over b to c and 3 from b to c: load 6 on a->b, 9 on b->c."""
    links = CHAIN.links[["tail", "head"]].assign(load_mbps=[6.0, 9.0, 0.0], utilization=[0.6, 0.9, 0.0])
    flows = pd.DataFrame(
        [("a", "c", "a", "b", 1, 6.0), ("a", "c", "b", "c", 1, 6.0), ("b", "c", "b", "c", 1, 3.0)],
        columns=["source", "target", "tail", "head", "parallel", "rate_mbps"],
    )
    return Routing(flows=flows, links=links.assign(parallel=1))


def change(**cells: Any) -> Routing:
    """Return the plan with changed cells of its flows, such as `rate_mbps_1=5.0`; link totals follow."""
    flows = plan().flows.copy()
    for name, value in cells.items():
        column, row = name.rsplit("_", 1)
        flows.loc[int(row), column] = value
    return with_totals(flows)


RING = network([("a", "b", 99.0), ("b", "c", 99.0), ("c", "b", 99.0)], [("a", "b", 3.0)])


def change_links_of_ring() -> Routing:
    """Return a plan of `RING` with 50 Mbit/s of a->b that circle between b and c."""
    flows = pd.DataFrame(
        [("a", "b", "b", "c", 1, 50.0), ("a", "b", "c", "b", 1, 50.0)],
        columns=["source", "target", "tail", "head", "parallel", "rate_mbps"],
    )
    links = RING.links[["tail", "head"]].assign(load_mbps=[0.0, 50.0, 50.0], parallel=1)
    shed = pd.DataFrame([("a", "b", 3.0)], columns=["source", "target", "rate_mbps"])
    return Routing(flows=flows, links=links.assign(utilization=links["load_mbps"] / 99.0), shed=shed)


def with_totals(flows: pd.DataFrame) -> Routing:
    load = flows.groupby(["tail", "head"])["rate_mbps"].sum()
    links = plan().links.assign(
        load_mbps=[
            float(load.get((tail, head), 0.0)) for tail, head in CHAIN.links[["tail", "head"]].to_numpy()
        ]
    )
    return Routing(flows=flows, links=links.assign(utilization=links["load_mbps"] / CHAIN.capacity_mbps))


def test_a_correct_plan_has_no_violations() -> None:
    assert not len(check(CHAIN, plan()))


REJECTED = {
    "a lost unit of flow": (change(rate_mbps_1=5.0), "flows a->c: at b 1 Mbit/s are lost"),
    "a unit from nowhere": (change(rate_mbps_1=7.0), "flows a->c: at b 1 Mbit/s appear from nowhere"),
    "a made-up link": (change(head_1="a"), "flows row 2: b->a is no link of the network"),
    "a made-up parallel link": (change(parallel_1=2), "flows row 2: b->c#2 is no link of the network"),
    "a made-up node": (change(head_1="z"), "flows row 2: b->z is no link of the network"),
    "a made-up demand": (change(target_2="a"), "flows row 3: b->a is no demand of the problem"),
    "a negative rate": (change(rate_mbps_2=-3.0), "flows row 3: rate_mbps is -3.0, must be at least 0"),
    "no number": (change(rate_mbps_2=float("nan")), "flows row 3: rate_mbps is nan, must be at least 0"),
    "more than wanted": (
        change(rate_mbps_2=4.0),
        "flows b->c: at b 4 Mbit/s are sent, the demand is 3 Mbit/s",
    ),
    "a link total that is no sum": (
        replace(plan(), links=plan().links.assign(load_mbps=[6.0, 8.0, 0.0])),
        "links: b->c has load_mbps 8, its flows add up to 9 Mbit/s",
    ),
    "a link with two totals": (
        replace(plan(), links=pd.concat([plan().links, plan().links.iloc[:1]])),
        "links: a->b is there twice",
    ),
    "traffic that circles where no demand passes": (
        change_links_of_ring(),
        "flows: 50 Mbit/s on b->c circle where no demand passes",
    ),
    "a link number that is not whole": (
        replace(plan(), flows=plan().flows.assign(parallel=[1, 1.5, 1])),
        "flows row 2: parallel is 1.5, must be a whole number from 1",
    ),
    "more shed than is not sent": (
        replace(plan(), shed=pd.DataFrame([("b", "c", 1.0)], columns=["source", "target", "rate_mbps"])),
        "shed: b->c is said to shed 1 Mbit/s, but 3 of its 3 Mbit/s are sent",
    ),
    "routes that are not the flows": (
        replace(
            plan(),
            routes=pd.DataFrame(
                [("a", "c", '["a", "c"]', 6.0), ("b", "c", '["b", "c"]', 3.0)],
                columns=["source", "target", "path", "rate_mbps"],
            ),
        ),
        "routes: a->c has 0 Mbit/s on a->b, its flows say 6 Mbit/s",
    ),
    "weights that make other flows": (
        replace(plan(), weights=plan().links[["tail", "head", "parallel"]].assign(weight=1.0)),
        "weights: a->c has 0 Mbit/s on a->b, its flows say 6 Mbit/s",
    ),
    "a link without a weight": (
        replace(plan(), weights=plan().links[["tail", "head", "parallel"]].assign(weight=1.0).iloc[1:]),
        "weights: a->b is missing",
    ),
    "a link without a total": (replace(plan(), links=plan().links.iloc[:2]), "links: a->c is missing"),
}


@pytest.mark.parametrize("fault", REJECTED)
def test_a_plan_that_is_no_flow_is_rejected(fault: str) -> None:
    corrupted, message = REJECTED[fault]
    with pytest.raises(PlanRejected) as caught:
        check(RING if "circles" in fault else CHAIN, corrupted)
    assert str(caught.value) == message


def test_an_overloaded_link_is_reported_with_its_amount() -> None:
    busy = Traffic(
        nodes=CHAIN.nodes, links=CHAIN.links.assign(capacity_mbps=[10.0, 8.0, 4.0]), demands=CHAIN.demands
    )
    capacity = {"limit": "capacity", "where": "b->c", "amount": 9.0, "allowed": 8.0, "unit": "Mbit/s"}
    now = replace(plan(), links=plan().links.assign(utilization=[0.6, 9 / 8, 0.0]))
    assert check(busy, now).frame.to_dict(orient="records") == [capacity]
    utilization = {"limit": "utilization", "where": "b->c", "amount": 0.9, "allowed": 9 / 8, "unit": ""}
    assert check(busy, plan()).frame.to_dict(orient="records") == [capacity, utilization]


def test_an_unserved_demand_is_reported_with_its_amount() -> None:
    left_out = with_totals(plan().flows.iloc[:2])
    assert check(CHAIN, left_out).frame.to_dict(orient="records") == [
        {"limit": "demand", "where": "b->c", "amount": 0.0, "allowed": 3.0, "unit": "Mbit/s"}
    ]


def test_flows_without_a_source_are_checked_by_target() -> None:
    flows = (
        plan()
        .flows.drop(columns="source")
        .groupby(["target", "tail", "head", "parallel"], as_index=False)
        .sum()
    )
    assert not len(check(CHAIN, with_totals(flows)))
    lost = flows.assign(rate_mbps=[6.0, 5.0])
    with pytest.raises(PlanRejected, match="flows to c: at b 1 Mbit/s are lost"):
        check(CHAIN, with_totals(lost))


LARGE, SMALL = 1e9, 1e-6
# s sends 1e9 over a to d; small demands join it at a, or take b
DECADES = network(
    [("s", "a", 2e9), ("a", "d", 2e9), ("b", "a", 1.0), ("b", "d", 1.0)],
    [("s", "d", LARGE), ("a", "d", 1e3), ("b", "d", SMALL)],
)


def to_target(sent: list[tuple[str, str, float]]) -> Routing:
    """Return a plan of `DECADES` with these flows to d."""
    flows = pd.DataFrame(sent, columns=["tail", "head", "rate_mbps"]).assign(target="d", parallel=1)
    load = flows.groupby(["tail", "head"])["rate_mbps"].sum()
    ends = DECADES.links[["tail", "head"]]
    loads = np.array([float(load.get((tail, head), 0.0)) for tail, head in ends.to_numpy()])
    links = ends.assign(parallel=1, load_mbps=loads, utilization=loads / DECADES.capacity_mbps)
    return Routing(flows=flows, links=links)


def test_rounding_beside_large_flows_to_the_same_target_is_allowed() -> None:
    assert not len(check(DECADES, to_target([("s", "a", LARGE), ("a", "d", LARGE + 1e3), ("b", "d", SMALL)])))
    near = to_target([("s", "a", LARGE), ("a", "d", LARGE + 1e3 + 5e-4), ("b", "d", SMALL * (1 + 5e-7))])
    assert not len(check(DECADES, near))
    over = to_target([("s", "a", LARGE), ("a", "d", LARGE + 1e3 + SMALL), ("b", "a", SMALL)])
    assert not len(check(DECADES, over))


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (
            [("a", "d", LARGE + 1.5e3), ("b", "d", SMALL)],
            "at a 1500 Mbit/s are sent, the demand is 1000 Mbit/s",
        ),
        (
            [("a", "d", LARGE + 1e3), ("b", "d", 2e-6)],
            "at b 2e-06 Mbit/s are sent, the demand is 1e-06 Mbit/s",
        ),
    ],
)
def test_a_small_demand_that_sends_too_much_beside_a_large_one_is_rejected(
    sent: list[tuple[str, str, float]], message: str
) -> None:
    with pytest.raises(PlanRejected, match=message):
        check(DECADES, to_target([("s", "a", LARGE), *sent]))


def test_a_small_demand_that_is_lost_on_the_way_beside_a_large_one_is_rejected() -> None:
    links = [("s", "d", 2e9), ("b", "c", 1.0), ("c", "d", 1.0)]
    problem = network(links, [("s", "d", LARGE), ("b", "d", SMALL)])
    flows = pd.DataFrame([("s", "d", LARGE), ("b", "c", SMALL)], columns=["tail", "head", "rate_mbps"])
    load = np.array([LARGE, SMALL, 0.0])
    totals = problem.links[["tail", "head"]].assign(
        parallel=1, load_mbps=load, utilization=load / problem.capacity_mbps
    )
    with pytest.raises(PlanRejected, match="at c 1e-06 Mbit/s are lost"):
        check(problem, Routing(flows=flows.assign(target="d", parallel=1), links=totals))


def test_a_small_demand_is_not_shed_and_sent_beside_a_large_one() -> None:
    good = to_target([("s", "a", LARGE), ("a", "d", LARGE + 1e3), ("b", "d", SMALL)])
    shed = pd.DataFrame([("b", "d", SMALL)], columns=["source", "target", "rate_mbps"])
    with pytest.raises(PlanRejected, match="shed: b->d is said to shed 1e-06 Mbit/s, but 1e-06 of its 1e-06"):
        check(DECADES, replace(good, shed=shed))
    with pytest.raises(PlanRejected, match="moved row 1: b->d moves 2e-06 Mbit/s, but 1e-06 Mbit/s are sent"):
        check(DECADES, replace(good, moved=shed.assign(rate_mbps=2 * SMALL)))
    missing = to_target([("s", "a", LARGE), ("a", "d", LARGE + 1e3), ("b", "d", SMALL / 2)])
    frame = check(DECADES, missing).frame
    assert frame[["limit", "where"]].to_numpy().tolist() == [["demand", "b->d"]]
    halved = replace(missing, shed=shed.assign(rate_mbps=SMALL / 2))
    assert not len(check(DECADES, halved))


@given(problem=problems(), data=st.data())
def test_every_lost_flow_is_rejected(problem: Traffic, data: st.DataObject) -> None:
    routing = ecmp.route(problem).plan
    assert routing is not None
    row = data.draw(st.integers(0, len(routing.flows) - 1))
    share = data.draw(st.floats(0.01, 0.99))
    flows = routing.flows.copy()
    lost = flows.loc[row, "rate_mbps"] * share
    flows.loc[row, "rate_mbps"] -= lost
    positions = routing.links.set_index(["tail", "head", "parallel"]).index
    loc = positions.get_loc(tuple(flows.loc[row, ["tail", "head", "parallel"]]))
    links = routing.links.copy()
    links.loc[loc, "load_mbps"] -= lost
    ends_there = flows.loc[row, ["tail", "head"]].tolist() == flows.loc[row, ["source", "target"]].tolist()
    corrupted = Routing(flows=flows, links=links)
    if ends_there:  # on a demand's only hop nothing is lost on the way: it is served less
        assert "demand" in check(problem, corrupted).frame["limit"].tolist()
    else:
        with pytest.raises(PlanRejected, match=r"are lost|appear from nowhere|are sent"):
            check(problem, corrupted)


# --- what the engine does with it ---------------------------------------------------------


def claims(made: Routing, **proof: Any) -> Entry:
    """Return a design that always decides on this plan with this proof."""

    def decide(problem: Traffic, *, options: Any, previous: Any) -> Decision[Routing]:
        return Decision(plan=made, proof=Proof(**{"status": Status.FEASIBLE, **proof}))

    design = Design(name="liar", decide=decide, mechanism=Mechanism.NONE, source="tests")
    return Entry(label="liar", design=design)


def test_a_violated_guarantee_is_rejected() -> None:
    busy = Traffic(
        nodes=CHAIN.nodes, links=CHAIN.links.assign(capacity_mbps=[10.0, 8.0, 4.0]), demands=CHAIN.demands
    )
    with pytest.raises(
        PlanRejected,
        match=r"liar: the plan violates constraints that it guarantees: capacity: .* 9 against 8",
    ):
        evaluate(SYSTEM, busy, claims(plan()))


def test_an_objective_other_than_that_of_the_plan_is_rejected() -> None:
    with pytest.raises(PlanRejected, match=r"concurrent_flow is 1\.11\d*, but the design claimed 1\.5"):
        evaluate(SYSTEM, CHAIN, claims(plan(), metric="concurrent_flow", objective=1.5))


def test_a_plan_better_than_its_bound_is_rejected() -> None:
    claim = claims(plan(), metric="concurrent_flow", objective=10 / 9, bound=1.0)
    with pytest.raises(PlanRejected, match=r"better than its proven bound 1\.0"):
        evaluate(SYSTEM, CHAIN, claim)


def test_noise_makes_overload_a_result() -> None:
    problem = SYSTEM.problem.presets["abilene"](peak_utilization=0.8)
    entry = Entry(
        label="optimum",
        design=SYSTEM.design("optimum"),
        parameters={"objective": "utilization"},
        information={"noise": 1.0},
    )
    run = evaluate(SYSTEM, problem, entry)
    best = optimum.route(problem, objective="utilization").proof.objective
    assert not run.omniscient
    assert run.metrics["max_utilization"] > best * 1.01, "it optimized what it observed, not what is"
    assert run.metrics["shed_mbps"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"links": plan().links}, "plan: has neither a table 'flows' nor 'routes'"),
        (
            {
                "routes": pd.DataFrame(
                    [("a", "c", "a,b,c", 1.0)], columns=["source", "target", "path", "rate_mbps"]
                )
            },
            "routes row 1: path is 'a,b,c', must be names of nodes, A > B > C, or a JSON list",
        ),
        (
            {
                "routes": pd.DataFrame(
                    [("a", "c", "[" * 3000, 1.0)], columns=["source", "target", "path", "rate_mbps"]
                )
            },
            f"routes row 1: path is '{'[' * 57}...', must be names of nodes, A > B > C, or a JSON list",
        ),
        (
            {
                "routes": pd.DataFrame(
                    [("a", "c", '["a", "b"]', 1.0)], columns=["source", "target", "path", "rate_mbps"]
                )
            },
            "routes row 1: a->c has a path from a to b",
        ),
        (
            {
                "routes": pd.DataFrame(
                    [("c", "a", '["c", "a"]', 1.0)], columns=["source", "target", "path", "rate_mbps"]
                )
            },
            "routes row 1: c->a is no demand of the problem",
        ),
    ],
)
def test_tables_that_are_no_plan(tables: dict[str, pd.DataFrame], message: str) -> None:
    with pytest.raises(PlanRejected) as caught:
        SYSTEM.plan.from_tables(CHAIN, tables)
    assert str(caught.value) == message


def test_flows_must_have_their_columns() -> None:
    with pytest.raises(InputError, match="plan: flows: column 'rate_mbps' is missing"):
        SYSTEM.plan.from_tables(CHAIN, {"flows": plan().flows.drop(columns="rate_mbps")})


def triangle(restoration: str, claims: list[float], **columns: float) -> tuple[Traffic, Routing]:
    """Return a plan that sends half of each demand a->d over b and half over c, and claims of what arrives.

    There is a pair of nodes a and d for each demand; a failure of a line takes half of its traffic.
    """
    lines, demands, routes = [], [], []
    for i, rate in enumerate(RATES):
        for middle in "bc":
            lines += [(f"a{i}", f"{middle}{i}", rate), (f"{middle}{i}", f"d{i}", rate)]
            path = [f"a{i}", f"{middle}{i}", f"d{i}"]
            routes.append((path[0], path[-1], json.dumps(path), rate / 2, rate / 2))
        demands.append((f"a{i}", f"d{i}", rate))
    problem = network(lines, demands)
    table = pd.DataFrame(routes, columns=["source", "target", "path", "rate_mbps", "reserved_mbps"])
    flows = pd.DataFrame(
        [
            (row.source, row.target, tail, head, 1, row.rate_mbps)
            for row in table.itertuples()
            for tail, head in itertools.pairwise(json.loads(row.path))
        ],
        columns=["source", "target", "tail", "head", "parallel", "rate_mbps"],
    )
    load = flows["rate_mbps"].to_numpy(float)
    links = problem.links[["tail", "head"]].assign(
        parallel=1, load_mbps=load, utilization=load / problem.capacity_mbps
    )
    guarantees = pd.DataFrame(demands, columns=["source", "target", "rate_mbps"]).assign(
        rate_mbps=claims, failures="links", at_once=1, restoration=restoration, **columns
    )
    if restoration == "reroute":
        table = table.drop(columns="reserved_mbps")
    return problem, Routing(flows=flows, links=links, routes=table, guarantees=guarantees)


@pytest.mark.parametrize("restoration", ["split", "reroute"])
def test_what_arrives_is_compared_with_each_claim_at_its_own_size(restoration: str) -> None:
    share = 0.5 if restoration == "split" else 1.0  # rerouted traffic fits on the line that is up
    for factor, is_kept in ((1.0, True), (1 + 5e-7, True), (1 + 1e-5, False)):
        problem, plan = triangle(restoration, [share * factor * rate for rate in RATES])
        if not is_kept and restoration == "reroute":  # more than is sent
            with pytest.raises(PlanRejected, match=r"row 1: a0->d0 is said to get 1\.00001e-06"):
                check(problem, plan)
            continue
        broken = check(problem, plan).frame
        assert broken["where"].str.split(":").str[0].tolist() == (
            [] if is_kept else [f"a{i}->d{i}" for i in range(len(RATES))]
        )


@pytest.mark.parametrize("row", range(len(RATES)))
def test_a_claim_of_more_than_is_sent_is_rejected_at_every_size(row: int) -> None:
    claims = [0.0] * len(RATES)
    claims[row] = RATES[row] * (1 + 1e-5)
    problem, plan = triangle("split", claims)
    with pytest.raises(PlanRejected, match=f"guarantees row {row + 1}: a{row}->d{row} is said to get"):
        check(problem, plan)


@pytest.mark.parametrize(("availability", "is_kept"), [(0.9999979, True), (0.9999985, False)])
def test_availability_is_compared_with_the_probability_of_failures(
    availability: float, is_kept: bool
) -> None:
    # each of 12 lines fails with 5e-7, and 4 of them take half of each demand: all arrives with 1 - 2e-6
    columns = {"availability": availability, "probability": 5e-7}
    problem, plan = triangle("split", list(RATES), **columns)
    assert len(check(problem, plan)) == (0 if is_kept else len(RATES))
